//! A session that takes the name of a configured workload takes no member out of a group, and no hook from an event.

use super::*;
use crate::model::document::tests::announced;
use crate::model::document::{Announcement, Status};
use crate::model::id::EventId;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::Replica;
use crate::model::time::Timestamp;
use crate::model::workload::{Hook, OnAbsent};
use alloc::vec;

fn vm() -> VmName {
    VmName::new("db-0")
}

/// A replica with a configured workload, and with a session workload; during an event of its VM, or not.
fn with(configured: Option<Workload>, session: Option<Workload>, is_open: bool) -> State {
    let mut state = State::default();
    let sessions = session.into_iter().map(|workload| (workload.name.clone(), workload)).collect();
    let workloads = configured.into_iter().map(|it| Workload { origin: Origin::Configured, ..it }).collect();
    state.replicas.insert(vm(), Replica { workloads, sessions, ..Replica::default() }.into());
    if is_open {
        let announcement = Announcement { resources: vec![vm()], ..announced("e", Status::Scheduled) };
        state.open.insert(EventId::new("e"), Event::first_seen_as(announcement, vm(), Timestamp(0)).into());
    }
    state
}

/// `pg` is configured in the group `orders`.
fn grants() -> Grants {
    let groups_of = [(WorkloadName("pg".into()), GroupName("orders".into()))].into();
    Grants { trusted: vec![0], groups_of, ..Grants::default() }
}

fn dialled(name: &str, group: Option<&str>) -> Workload {
    Workload {
        name: WorkloadName(name.into()),
        group: group.map(|name| GroupName(name.into())),
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Session { owner: 0 },
        on_absent: OnAbsent::Hold,
    }
}

#[test]
fn who_replaces_a_configured_member_stays_in_its_group() {
    let registers = |name: &str, group| with(None, None, false).may_register(&vm(), &dialled(name, group), &grants());
    assert_eq!(registers("pg", Some("orders")), Ok(()));
    let (name, group) = (WorkloadName("pg".into()), GroupName("orders".into()));
    let leaves = Err(OwnershipError::LeavesGroup { name, group });
    assert_eq!(registers("pg", Some("other")), leaves);
    assert_eq!(registers("pg", None), leaves);
    assert_eq!(registers("cache", None), Ok(()));
}

#[test]
fn a_registration_from_before_the_configuration_may_connect_during_an_event_alone() {
    let known = dialled("pg", None);
    let may = |is_open| with(None, Some(known.clone()), is_open).may_register(&vm(), &known, &grants()).is_ok();
    assert!(may(true), "the event keeps its hooks");
    assert!(!may(false));
}

#[test]
fn who_connects_first_during_an_event_brings_the_phases_of_the_configured_workload() {
    let hooks = |phases: &[Phase]| phases.iter().copied().map(Hook::of).collect();
    let of = |phases: &[Phase]| Workload { hooks: hooks(phases), ..dialled("pg", Some("orders")) };
    let configured = of(&[Phase::Failover, Phase::Drain, Phase::Restore]);
    let registers = |phases: &[Phase], is_open| {
        with(Some(configured.clone()), None, is_open).may_register(&vm(), &of(phases), &grants())
    };
    assert_eq!(registers(&[], false), Ok(()));
    let lacks = |phase| Err(OwnershipError::Lacks { name: WorkloadName("pg".into()), phase, event: EventId::new("e") });
    assert_eq!(registers(&[], true), lacks(Phase::Failover));
    assert_eq!(registers(&[Phase::Failover], true), lacks(Phase::Drain));
    assert_eq!(registers(&[Phase::Drain, Phase::Failover], true), Ok(()));
}

#[test]
fn a_registration_that_an_event_needs_is_refused_with_the_difference() {
    let of = |hooks: &[Hook], after: &[&str]| Workload {
        hooks: hooks.to_vec(),
        after: after.iter().map(|name| WorkloadName((*name).into())).collect(),
        ..dialled("db", None)
    };
    let drain = Hook::of(Phase::Drain);
    let slower = Hook { timeout: drain.timeout * 2, name: Some("connections".into()), ..drain.clone() };
    let refused = |known: &Workload, new: &Workload| {
        let why = with(None, Some(known.clone()), true).may_register(&vm(), new, &grants());
        why.err().map(|why| why.to_string()).unwrap_or_default()
    };
    let known = of(core::slice::from_ref(&slower), &["proxy"]);
    let told = refused(&known, &of(&[Hook { timeout: drain.timeout, ..slower.clone() }], &["proxy"]));
    assert!(told.contains("lacks or changes `timeout_ms` of the drain hook connections: "), "{told}");
    let told = refused(&known, &of(core::slice::from_ref(&slower), &[]));
    assert!(told.contains("lacks or changes proxy in `after`"), "{told}");
    let told = refused(&known, &of(&[], &["proxy"]));
    assert!(told.contains("lacks or changes the drain hook connections: "), "{told}");
    let unnamed = of(&[Hook { can_undo: true, ..drain.clone() }], &[]);
    let told = refused(&unnamed, &of(&[drain.clone(), drain.clone()], &[]));
    assert!(told.contains("lacks or changes the drain hook, or a setting of it: "), "{told}");
    let two = of(&[drain.clone(), Hook { can_undo: true, ..drain.clone() }], &[]);
    let told = refused(&two, &of(core::slice::from_ref(&drain), &[]));
    assert!(told.contains("lacks or changes the drain hook, or a setting of it: "), "{told}");
    assert_eq!(refused(&known, &of(&[slower.clone(), drain], &["proxy", "cache"])), "", "more than before");
}

#[test]
fn a_member_that_is_out_keeps_the_hooks_that_bring_it_back() {
    let hooks = |phases: &[Phase]| phases.iter().map(|phase| Hook::of(*phase)).collect();
    let known = Workload { hooks: hooks(&[Phase::Shutdown, Phase::Restore, Phase::Ready]), ..dialled("db", None) };
    let may = |needs_restore, phases: &[Phase]| {
        let mut state = with(None, Some(known.clone()), false);
        let slot = Slot {
            stint: 1,
            first_stint: 1,
            state: SlotState::Out,
            since: Timestamp(0),
            group: None,
            events: [EventId::new("e")].into(),
            by: EventId::new("e"),
            was_fit: true,
            restore_failed: false,
            needs_restore,
        };
        state.slots.insert(known.on(&vm()), slot);
        let new = Workload { hooks: hooks(phases), ..dialled("db", None) };
        state.may_register(&vm(), &new, &grants())
    };
    let owes =
        |phase| Err(OwnershipError::OwesRestore { name: WorkloadName("db".into()), phase, event: EventId::new("e") });
    assert_eq!(may(true, &[Phase::Shutdown]), owes(Phase::Restore));
    assert_eq!(may(true, &[Phase::Restore]), owes(Phase::Ready));
    assert_eq!(may(true, &[Phase::Restore, Phase::Ready]), Ok(()), "a database may come back with other hooks");
    assert_eq!(may(false, &[]), owes(Phase::Ready), "the confirmation that the member serves again");
    assert_eq!(may(false, &[Phase::Ready]), Ok(()), "no hook has begun, so nothing is restored");
}
