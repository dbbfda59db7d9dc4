//! Roles of unreachable replicas, and two reports of the primary.

use super::*;
use crate::apply::apply;
use crate::model::command::{ApplyResult, Command, Entry, RegisterWorkloads, UpdateConditions};
use crate::model::document::tests::announced;
use crate::model::document::{Announcement, Status};
use crate::model::id::{AttemptId, EventId, VmName, WorkloadName};
use crate::model::isolation::{ImdsHealth, IsolatedView};
use crate::model::workload::{Condition, Hook, OnAbsent, Origin};
use crate::planning_input::{PeerHealth, Timing};
use crate::policy::Policy;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::time::Duration;

const NOW: Timestamp = Timestamp(1_000_000);
const SINCE: Timestamp = Timestamp(940_000);

/// Two members of one group, with these roles, and with a failover hook or without.
fn with(roles: [Role; 2], has_failover: bool) -> State {
    let mut state = State::default();
    for (vm, role) in ["a", "b"].map(VmName::new).into_iter().zip(roles) {
        let hooks = if has_failover { alloc::vec![Hook::of(Phase::Failover)] } else { Vec::new() };
        let name = WorkloadName("w".into());
        let workload = Workload {
            name: name.clone(),
            group: Some(GroupName("orders".into())),
            after: Vec::new(),
            hooks,
            origin: Origin::Configured,
            on_absent: OnAbsent::Hold,
        };
        let condition = Condition { role, ..Condition::default() };
        // A workload has no known role before its first report.
        let told = Command::UpdateConditions(UpdateConditions { conditions: alloc::vec![(name, condition)] });
        let registers = RegisterWorkloads { workloads: alloc::vec![workload], groups: Vec::new() };
        for command in
            core::iter::once(Command::RegisterWorkloads(registers)).chain(Some(told).filter(|_| role != Role::Unknown))
        {
            assert_eq!(apply(&mut state, &Entry { at: SINCE, by: vm.clone(), command }), ApplyResult::Applied);
        }
    }
    state
}

fn input(reachable: &[&str]) -> PlanningInput {
    let contact = |name: &str| PeerHealth {
        reachable: reachable.contains(&name),
        since: SINCE,
        imds: ImdsHealth::Healthy,
        imds_since: SINCE,
        document_age: Some(Duration::ZERO),
        answers_in: Duration::ZERO,
        operator_seq: 0,
        can_acknowledge: false,
    };
    PlanningInput {
        now: NOW,
        me: VmName::new("a"),
        peers: ["a", "b"].map(|name| (VmName::new(name), contact(name))).into(),
        members: ["a", "b"].map(VmName::new).into(),
        learners: BTreeSet::new(),
        versions: BTreeMap::new(),
        quorum: true,
        leading_since: SINCE,
        leader: None,
        isolated: None,
        policy: Policy::default(),
        timing: Timing::default(),
    }
}

fn event() -> Event {
    let resources = ["a", "b"].map(VmName::new).into();
    Event::first_seen_as(Announcement { resources, ..announced("e", Status::Scheduled) }, VmName::new("a"), NOW)
}

fn roles(state: &State, input: &PlanningInput) -> [KnownRole; 2] {
    let down = taken_down(state, &event(), input);
    [down[0].role, down[1].role]
}

const fn certain(role: Role) -> KnownRole {
    KnownRole { role, last: None }
}

const fn old(role: Role, unreachable_since: Option<Timestamp>) -> KnownRole {
    KnownRole { role: Role::Unknown, last: Some(LastRole { role, unreachable_since }) }
}

#[test]
fn the_role_of_an_unreachable_replica_is_an_old_one() {
    let state = with([Role::Replica, Role::Primary], true);
    assert_eq!(roles(&state, &input(&["a", "b"])), [certain(Role::Replica), certain(Role::Primary)]);
    assert_eq!(roles(&state, &input(&["a"])), [certain(Role::Replica), old(Role::Primary, Some(SINCE))]);
}

#[test]
fn there_are_never_two_primaries_where_a_failover_moves_one() {
    let both = [Role::Primary, Role::Primary];
    assert_eq!(roles(&with(both, true), &input(&["a", "b"])), [old(Role::Primary, None); 2]);
    assert_eq!(roles(&with(both, true), &input(&["a"])), [certain(Role::Primary), old(Role::Primary, Some(SINCE))]);
    // A group without a failover hook may have several primaries.
    assert_eq!(roles(&with(both, false), &input(&["a", "b"])), [certain(Role::Primary); 2]);
}

/// Right after a failover, the last report of the old primary is from before.
#[test]
fn the_old_primary_is_no_second_primary_while_it_is_down_after_its_failover() {
    let after_failover = |roles, outcome| {
        let mut state = with(roles, true);
        let member = Member { vm: VmName::new("a"), workload: WorkloadName("w".into()) };
        let hook = state.workload(&member).and_then(|workload| workload.hooks_of(Phase::Failover).next()).unwrap().0;
        let mut event = event();
        event.attempts.push(Attempt {
            id: AttemptId(1),
            member: member.clone(),
            hook,
            intent: Intent::Run,
            stint: 7,
            on: VmName::new("a"),
            begun_at: SINCE,
            deadline: NOW,
            progress: None,
            blocked: None,
            outcome: Some((outcome, NOW)),
            late: None,
        });
        let slot = Slot {
            stint: 7,
            first_stint: 7,
            state: SlotState::Leaving,
            since: SINCE,
            group: Some(GroupName("orders".into())),
            events: [EventId::new("e")].into(),
            by: EventId::new("e"),
            was_fit: true,
            restore_failed: false,
            needs_restore: true,
        };
        state.slots.insert(member, slot);
        state.open.insert(EventId::new("e"), event.into());
        let both = input(&["a", "b"]);
        (self::roles(&state, &both), primary_faults(&state, &both).len())
    };
    let both = [Role::Primary, Role::Primary];
    assert_eq!(after_failover(both, Outcome::Done), ([certain(Role::Unknown), certain(Role::Primary)], 0));
    assert_eq!(after_failover(both, Outcome::Failed("no".into())), ([old(Role::Primary, None); 2], 1));
    // It was elected again.
    let again = [Role::Primary, Role::Replica];
    assert_eq!(after_failover(again, Outcome::Done), (again.map(certain), 0));
}

#[test]
fn a_silent_primary_is_no_rival_for_a_replica_without_a_leader() {
    let state = with([Role::Replica, Role::Primary], true);
    let mut alone = input(&["a"]);
    alone.peers.remove(&VmName::new("b"));
    alone.isolated = Some(IsolatedView { since: SINCE, ..IsolatedView::default() });
    assert_eq!(roles(&state, &alone), [certain(Role::Replica), old(Role::Primary, Some(SINCE))]);
}

/// Nothing is concluded while a member is unreachable, or where there could be no primary at all.
#[test]
fn a_group_without_a_known_primary_or_with_two_is_told() {
    let fault = |roles, has_failover, reachable: &[&str]| {
        let found = primary_faults(&with(roles, has_failover), &input(reachable));
        found.into_iter().map(|(group, fault)| (group.0, fault)).collect::<Vec<_>>()
    };
    let both = ["a", "b"].map(|vm| Member { vm: VmName::new(vm), workload: WorkloadName("w".into()) });
    let all: &[&str] = &["a", "b"];
    let orders = || String::from("orders");
    let absent = fault([Role::Replica, Role::Replica], true, all);
    assert_eq!(absent, [(orders(), PrimaryFault::Absent(both.to_vec()))]);
    let several = fault([Role::Primary, Role::Primary], true, all);
    assert_eq!(several, [(orders(), PrimaryFault::Several(both.to_vec()))]);
    let [a, b] = both;
    let unknown = fault([Role::Unknown, Role::Replica], true, all);
    assert_eq!(unknown, [(orders(), PrimaryFault::Unknown { silent: vec![a], others: vec![b] })]);
    for (roles, has_failover, reachable) in [
        ([Role::Primary, Role::Replica], true, all),
        ([Role::Primary, Role::Unknown], true, all),
        ([Role::Unknown, Role::Unknown], true, all),
        ([Role::Replica, Role::Replica], false, all),
        ([Role::Replica, Role::Unknown], true, &["a"]),
        ([Role::Replica, Role::Replica], true, &["a"]),
    ] {
        assert_eq!(fault(roles, has_failover, reachable), []);
    }
}

#[test]
fn a_disconnected_session_tells_no_role_and_takes_none_from_another_member() {
    let mut state = with([Role::Primary, Role::Primary], true);
    let away = Timestamp(970_000);
    let replica = alloc::sync::Arc::make_mut(state.replicas.get_mut(&VmName::new("a")).unwrap());
    replica.disconnected.insert(WorkloadName("w".into()), away);
    let role = |vm| {
        known_role(&state, &input(&["a", "b"]), &Member { vm: VmName::new(vm), workload: WorkloadName("w".into()) })
    };
    let last = LastRole { role: Role::Primary, unreachable_since: Some(away) };
    assert_eq!(role("a"), KnownRole { role: Role::Unknown, last: Some(last) });
    assert_eq!(role("b"), KnownRole { role: Role::Primary, last: None });
    assert_eq!(primary_faults(&state, &input(&["a", "b"])), []);
}
