//! A session that takes the name of a configured workload takes no member out of a group, and no hook from an event.

use super::*;
use crate::model::document::{Announcement, EventType, NotBefore, Source, Status};
use crate::model::state::Replica;
use crate::model::time::Timestamp;
use crate::model::workload::{Hook, OnAbsent, Phase};
use alloc::string::String;
use alloc::vec;

fn vm() -> VmName {
    VmName::new("db-0")
}

fn configured() -> Workload {
    Workload {
        name: WorkloadName("pg".into()),
        group: Some(GroupName("orders".into())),
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    }
}

fn dialled(group: Option<&str>) -> Workload {
    let group = group.map(|name| GroupName(name.into()));
    Workload { group, origin: Origin::Session { owner: 0 }, ..configured() }
}

fn with(replica: Replica) -> State {
    let mut state = State::default();
    state.replicas.insert(vm(), replica.into());
    state
}

fn grants() -> Grants {
    Grants { trusted: vec![0], ..Grants::default() }
}

#[test]
fn who_replaces_a_configured_member_stays_in_its_group() {
    let state = with(Replica { workloads: vec![configured()], ..Replica::default() });
    let leaves = Err(OwnershipError::LeavesGroup { name: configured().name, group: GroupName("orders".into()) });
    assert_eq!(state.may_register(&vm(), &dialled(Some("orders")), &grants()), Ok(()));
    assert_eq!(state.may_register(&vm(), &dialled(Some("other")), &grants()), leaves);
    assert_eq!(state.may_register(&vm(), &dialled(None), &grants()), leaves);
    let other = Workload { name: WorkloadName("cache".into()), ..dialled(None) };
    assert_eq!(state.may_register(&vm(), &other, &grants()), Ok(()));
}

#[test]
fn a_group_given_by_the_configuration_ends_an_earlier_registration_without_it() {
    let of = |dialled: Workload| {
        let sessions = [(dialled.name.clone(), dialled)].into();
        with(Replica { workloads: vec![configured()], sessions, ..Replica::default() })
    };
    assert_eq!(of(dialled(None)).no_longer_granted(&vm(), &grants()), [configured().name]);
    assert_eq!(of(dialled(Some("orders"))).no_longer_granted(&vm(), &grants()), []);
}

#[test]
fn who_connects_during_an_event_takes_no_configured_hook_from_it() {
    let announcement = Announcement {
        id: EventId::new("e"),
        status: Status::Scheduled,
        kind: EventType::Reboot,
        source: Source::User,
        resource_type: String::new(),
        resources: vec![vm()],
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    };
    let with_hook: Workload = Workload { hooks: vec![Hook::of(Phase::Drain)], ..configured() };
    let mut state = with(Replica { workloads: vec![with_hook.clone()], ..Replica::default() });
    let same = Workload { origin: Origin::Session { owner: 0 }, ..with_hook };
    assert_eq!(state.may_register(&vm(), &dialled(Some("orders")), &grants()), Ok(()));
    state.open.insert(EventId::new("e"), Event::first_seen_as(announcement, vm(), Timestamp(0)).into());
    let refused = state.may_register(&vm(), &dialled(Some("orders")), &grants());
    assert_eq!(refused, Err(OwnershipError::Needed { name: configured().name, event: EventId::new("e") }));
    assert_eq!(state.may_register(&vm(), &same, &grants()), Ok(()), "it brings the same hooks");
}
