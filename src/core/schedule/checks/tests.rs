//! When checks may run: of a group with two members, and beside it a workload without a group.

use super::*;
use crate::apply::apply;
use crate::apply::slots::take_all;
use crate::model::command::{ApplyResult, Command, Entry, RegisterWorkloads};
use crate::model::document::{Announcement, EventType, NotBefore, Source, Status};
use crate::model::id::{EventId, GroupName, WorkloadName};
use crate::model::time::Timestamp;
use crate::model::workload::{Hook, OnAbsent, Origin, Phase, Workload};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

fn workload(name: &str, group: Option<&str>) -> Workload {
    Workload {
        name: WorkloadName(name.into()),
        group: group.map(|group| GroupName(group.into())),
        after: Vec::new(),
        hooks: vec![Hook::of(Phase::Check), Hook::of(Phase::Drain)],
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    }
}

/// `pg` of a group on two VMs, and `pooler` without a group on the first.
fn usual() -> State {
    let mut state = State::default();
    for (vm, workloads) in [
        ("a", vec![workload("pg", Some("orders")), workload("pooler", None)]),
        ("b", vec![workload("pg", Some("orders"))]),
        ("c", vec![workload("cache", None)]),
    ] {
        let command = Command::RegisterWorkloads(RegisterWorkloads { workloads, groups: Vec::new() });
        let entry = Entry { at: Timestamp(1), by: VmName::new(vm), command };
        assert_eq!(apply(&mut state, &entry), ApplyResult::Applied);
    }
    state
}

fn member(vm: &str, workload: &str) -> Member {
    Member { vm: VmName::new(vm), workload: WorkloadName(workload.into()) }
}

/// The members with permission for a check.
fn checked(state: &State) -> Vec<String> {
    let all = [member("a", "pg"), member("a", "pooler"), member("b", "pg"), member("c", "cache")];
    all.iter().filter(|member| may_check(state, member)).map(Member::path).collect()
}

fn announce(state: &mut State, vm: &str) -> EventId {
    let id = EventId::new("e");
    let announcement = Announcement {
        id: id.clone(),
        status: Status::Scheduled,
        kind: EventType::Reboot,
        source: Source::Platform,
        resource_type: String::new(),
        resources: vec![VmName::new(vm)],
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    };
    let event = Event::first_seen_as(announcement, VmName::new("a"), Timestamp(2));
    state.open.insert(id.clone(), Arc::new(event));
    id
}

#[test]
fn everybody_is_checked_as_long_as_no_event_is_under_way() {
    let mut state = usual();
    assert_eq!(checked(&state), ["a/pg", "a/pooler", "b/pg", "c/cache"]);
    announce(&mut state, "b");
    assert_eq!(checked(&state).len(), 4, "an event may be announced for days");
    assert!(!may_check(&state, &member("a", "unknown")));
}

#[test]
fn the_group_of_a_member_that_is_out_is_not_checked() {
    let mut state = usual();
    let id = announce(&mut state, "b");
    take_all(&mut state, &id);
    assert_eq!(checked(&state), ["a/pooler", "c/cache"]);
}

#[test]
fn the_group_of_a_vm_that_azure_works_on_is_not_checked() {
    let mut state = usual();
    let id = announce(&mut state, "b");
    let event = state.open.get_mut(&id).map(Arc::make_mut).unwrap();
    event.entered.push((Stage::Started, Timestamp(3)));
    assert_eq!(checked(&state), ["a/pooler", "c/cache"]);
}

#[test]
fn a_group_with_an_unreachable_member_is_not_checked() {
    let mut state = usual();
    let replica = state.replicas.get_mut(&VmName::new("a")).map(Arc::make_mut).unwrap();
    replica.unreachable = Some(Timestamp(3));
    assert_eq!(checked(&state), ["c/cache"]);
}
