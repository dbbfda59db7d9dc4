//! Workloads, documents, events and a state with every field filled somewhere and left out somewhere else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use allclear::core::model::attempt::{Attempt, BlockedCount, Outcome, Progress, Waiver, WaiverReason};
use allclear::core::model::claim::{Claim, PostOutcome, Reason};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::drill::{Drill, Mode};
use allclear::core::model::event::{Ending, Event};
use allclear::core::model::hook_id::HookId;
use allclear::core::model::id::{AttemptId, EventId, GroupName, VmName, WorkloadName};
use allclear::core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::notification::{Delivery, DeliveryRecord};
use allclear::core::model::operator::{OperatorAction, OperatorRecord};
use allclear::core::model::reconcile_state::{Leadership, ReconcileState};
use allclear::core::model::slot::{Slot, SlotState};
use allclear::core::model::state::{Replica, State};
use allclear::core::model::time::Timestamp;
use allclear::core::model::treatment::{Action, Treatment};
use allclear::core::model::workload::{
    Condition, Group, Hook, Intent, Member, OnAbsent, OnFailure, Origin, Phase, Readiness, Role, RunsOn, Workload,
};

pub(crate) const NOW: i64 = 1_767_225_600_000;

pub(crate) fn postgres() -> Workload {
    let hooks = [
        (Phase::Checkpoint, OnFailure::Continue, RunsOn::Affected),
        (Phase::Failover, OnFailure::Hold, RunsOn::Any),
        (Phase::Drain, OnFailure::Hold, RunsOn::Peer),
        (Phase::Shutdown, OnFailure::Hold, RunsOn::Affected),
        (Phase::Restore, OnFailure::Continue, RunsOn::Affected),
        (Phase::Ready, OnFailure::Continue, RunsOn::Affected),
    ];
    let hook = |(phase, on_failure, runs_on)| Hook {
        name: (phase == Phase::Failover).then(|| "switch".into()),
        command_digest: if phase == Phase::Drain { u64::MAX } else { 0 },
        on_failure,
        runs_on,
        can_confirm: phase == Phase::Failover,
        can_undo: phase == Phase::Drain,
        min_freeze: (phase == Phase::Failover).then_some(Duration::from_millis(5_500)),
        fresh_for: (phase == Phase::Checkpoint).then_some(Duration::ZERO),
        optional_if_short: phase == Phase::Shutdown,
        ..Hook::of(phase)
    };
    Workload {
        name: WorkloadName("postgres".into()),
        group: Some(GroupName("orders-db".into())),
        after: vec![WorkloadName("cache".into()), WorkloadName("queue".into())],
        hooks: hooks.into_iter().map(hook).collect(),
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    }
}

pub(crate) fn cache() -> Workload {
    Workload { name: WorkloadName("cache".into()), group: None, after: Vec::new(), hooks: Vec::new(), ..postgres() }
}

/// Session workloads were stored later than everything in the rich state.
pub(crate) fn dialled() -> Workload {
    let mut hooks = postgres().hooks;
    hooks[0].worst = Some(Duration::from_secs(90));
    hooks[1].exclusive = true;
    hooks[2].event_types = vec![EventType::Freeze, EventType::Other("Defrost".into())];
    Workload { hooks, origin: Origin::Session { owner: 0 }, on_absent: OnAbsent::Skip, ..postgres() }
}

pub(crate) fn conditions() -> Vec<(WorkloadName, Condition)> {
    let readiness = Readiness::Unasked;
    let condition = |name: &str, role, connected| (WorkloadName(name.into()), Condition { role, connected, readiness });
    vec![
        condition("cache", Role::Replica, true),
        condition("postgres", Role::Primary, false),
        condition("queue", Role::Unknown, false),
    ]
}

pub(crate) fn dialled_state() -> State {
    let stood_for = Workload { origin: Origin::Session { owner: 0 }, on_absent: OnAbsent::Command, ..cache() };
    let replica = Replica {
        workloads: vec![cache()],
        sessions: [dialled(), stood_for].map(|workload| (workload.name.clone(), workload)).into(),
        conditions: conditions().into_iter().collect(),
        disconnected: BTreeMap::from([(WorkloadName("postgres".into()), Timestamp(NOW))]),
        unready: BTreeMap::from([(WorkloadName("cache".into()), Timestamp(NOW + 1))]),
        owed_workloads: BTreeMap::from([(WorkloadName("postgres".into()), postgres())]),
        ..Replica::default()
    };
    State { replicas: BTreeMap::from([(VmName::new("db-0"), replica.into())]), ..State::default() }
}

pub(crate) fn member(workload: &str) -> Member {
    Member { vm: VmName::new("DB-0"), workload: WorkloadName(workload.into()) }
}

pub(crate) fn document() -> Document {
    Document::new(vec![announcement("A-1"), words_of_tomorrow("b-2")])
}

pub(crate) fn announcement(id: &str) -> Announcement {
    Announcement {
        id: EventId::new(id),
        status: Status::Scheduled,
        kind: EventType::Redeploy,
        source: Source::User,
        resource_type: "VirtualMachine".into(),
        resources: vec![VmName::new("_DB-0"), VmName::new("db-1")],
        not_before: NotBefore::At(Timestamp(NOW + 900_000)),
        description: "Virtual machine is being redeployed – soon".into(),
        duration: Some(Duration::ZERO),
    }
}

/// Words of later versions are kept unchanged.
fn words_of_tomorrow(id: &str) -> Announcement {
    Announcement {
        id: EventId::new(id),
        status: Status::Other("Postponed".into()),
        kind: EventType::Other("Teleport".into()),
        source: Source::Other("Tenant".into()),
        resource_type: String::new(),
        resources: Vec::new(),
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    }
}

pub(crate) fn treatment() -> Treatment {
    Treatment {
        action: Action::Prepare,
        rule: "quiet freezes".into(),
        phases: vec![Phase::Checkpoint, Phase::Failover, Phase::Drain, Phase::Shutdown],
        budget: Some(Duration::from_mins(2)),
        ahead: Some(Duration::from_mins(15)),
        opening: None,
        missed: None,
        only_named_freezes: true,
        margin: Duration::from_secs(5),
        give_back_after: Duration::from_mins(2),
        last_call: Duration::from_mins(1),
        repost_after: Duration::from_mins(1),
    }
}

fn attempt(id: u64, intent: Intent, outcome: Option<Outcome>) -> Attempt {
    Attempt {
        id: AttemptId(id),
        member: member("postgres"),
        hook: HookId { phase: Phase::Failover, key: u64::MAX },
        intent,
        stint: 0,
        on: VmName::new("db-1"),
        begun_at: Timestamp(NOW + 1),
        deadline: Timestamp(NOW + 2),
        progress: None,
        blocked: None,
        outcome: outcome.map(|outcome| (outcome, Timestamp(NOW + 3))),
        late: None,
    }
}

fn claim(attempt: u64, reason: Reason, outcome: Option<PostOutcome>) -> Claim {
    Claim {
        attempt: AttemptId(attempt),
        approver: VmName::new("db-2"),
        reason,
        decided_at_revision: 2,
        stints: Vec::new(),
        at: Timestamp(NOW + 4),
        until: Timestamp(NOW + 5_004),
        outcome: outcome.map(|outcome| (outcome, Timestamp(NOW + 5))),
        is_last_resort: false,
    }
}

/// An event that passed through every stage.
fn closed_event() -> Event {
    let late = Attempt {
        progress: Some(Progress { text: "half way".into(), expected_end: None }),
        blocked: Some(BlockedCount { times: 12, since: Timestamp(NOW - 3) }),
        late: Some((Outcome::Done, Timestamp(NOW + 70))),
        ..attempt(2, Intent::Undo, Some(Outcome::Unknown("gone".into())))
    };
    Event {
        announcement: Announcement { status: Status::Started, kind: EventType::Freeze, ..announcement("A-1") },
        seen_by: BTreeSet::from([VmName::new("DB-0"), VmName::new("db-1")]),
        entered: (10..).zip(Stage::ALL).map(|(at, stage)| (stage, Timestamp(NOW + at))).collect(),
        revision: 23,
        treatment: Some(treatment()),
        attempts: vec![attempt(1, Intent::Run, None), late, attempt(3, Intent::Confirm, Some(Outcome::NotDone))],
        waivers: vec![Waiver {
            member: member("cache"),
            hook: HookId { phase: Phase::Drain, key: 0 },
            why: WaiverReason::Unreachable,
            at: Timestamp(NOW + 8),
        }],
        claims: vec![
            claim(4, Reason::NothingToPrepare, Some(PostOutcome::Refused(503))),
            claim(5, Reason::Policy, Some(PostOutcome::Unknown("no reply".into()))),
            claim(6, Reason::BudgetSpent, None),
            claim(7, Reason::Prepared, Some(PostOutcome::Accepted)),
        ],
        isolated_approvals: Vec::new(),
        ending: Some(Ending::Completed),
        departed: BTreeSet::new(),
        drill: None,
        operator_records: Vec::new(),
        treated: None,
        impacts: BTreeMap::new(),
        slots_since: None,
        stuck_since: None,
        times_given_back: 0,
        is_deferred: false,
        last_call_since: None,
        former_calls: Vec::new(),
        gave_back: Vec::new(),
        decided_at_revision: 1,
        reopened: None,
        halted_until: None,
    }
}

/// Measurements were stored later than everything in the rich state.
pub(crate) fn measured_state() -> State {
    let impacts = [("db-0", 8_250), ("_DB-1", 0)];
    let measured = Event {
        treated: Some(Timestamp(NOW + 1)),
        impacts: impacts.into_iter().map(|(vm, ms)| (VmName::new(vm), Duration::from_millis(ms))).collect(),
        ..Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW))
    };
    State { history: VecDeque::from([measured.into()]), ..State::default() }
}

pub(crate) fn rich_state() -> State {
    let fresh = |announcement: Announcement| Event::first_seen_as(announcement, VmName::new("db-1"), Timestamp(NOW));
    let treated = |id, action, ending| Event {
        treatment: Some(Treatment { action, budget: None, ahead: None, only_named_freezes: false, ..treatment() }),
        ending,
        ..fresh(Announcement { source: Source::Platform, ..announcement(id) })
    };
    let open = [closed_event(), fresh(words_of_tomorrow("b-2")), treated("C-3", Action::Observe, None)];
    let known =
        Replica { workloads: vec![postgres(), cache()], reports: 42, document: Some(document()), ..Replica::default() };
    let silent =
        Replica { document: Some(Document::default()), stale_since: Some(Timestamp(-1)), ..Replica::default() };
    State {
        now: Timestamp(NOW + 100),
        replicas: BTreeMap::from([
            (VmName::new("_DB-0"), known.into()),
            (VmName::new("db-1"), silent.into()),
            (VmName::new("db-2"), Arc::default()),
        ]),
        open: open.into_iter().map(|event| (event.announcement.id.clone(), event.into())).collect(),
        history: VecDeque::from([
            treated("z-9", Action::Approve, Some(Ending::Cancelled)).into(),
            treated("d-4", Action::Prepare, Some(Ending::Forgotten)).into(),
        ]),
        attempts: 7,
        ..State::default()
    }
}

pub(crate) fn groups() -> Vec<Group> {
    let group = |name: &str, max_unavailable| Group { name: GroupName(name.into()), max_unavailable };
    vec![group("orders-db", 2), group("cache", u32::MAX)]
}

/// Groups were stored later than everything in the rich state.
pub(crate) fn grouped_state() -> State {
    let replica = Replica { groups: groups(), ..Replica::default() };
    State { replicas: BTreeMap::from([(VmName::new("db-0"), replica.into())]), ..State::default() }
}

pub(crate) fn journal() -> Vec<JournalEntry> {
    let takeover = |at, outcome: Option<PostOutcome>| IsolatedApproval {
        approver: VmName::new("db-1"),
        at: Timestamp(NOW + at),
        alone_since: Timestamp(NOW),
        out_of_reach: vec![VmName::new("db-0"), VmName::new("db-2")],
        requested_by: None,
        outcome: outcome.map(|outcome| (outcome, Timestamp(NOW + at + 1))),
        recorded: None,
    };
    vec![
        JournalEntry { announcement: announcement("A-1"), approval: takeover(10_000, Some(PostOutcome::Refused(503))) },
        JournalEntry { announcement: announcement("A-1"), approval: takeover(15_000, None) },
    ]
}

/// Leaders and the actions of isolated replicas were stored later than groups.
pub(crate) fn led_state() -> State {
    let mut taken_over = Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW));
    let recorded = |entry: JournalEntry| IsolatedApproval { recorded: Some(Timestamp(NOW + 20_000)), ..entry.approval };
    taken_over.isolated_approvals = journal().into_iter().map(recorded).collect();
    let suspicion = |number, is_cleared| ReconcileState { number, since: Timestamp(NOW), is_reconciled: is_cleared };
    State {
        history: VecDeque::from([taken_over.into()]),
        leadership: Some(Leadership { by: VmName::new("db-0"), term: 3, turn: 2, voters: vec![VmName::new("db-1")] }),
        reconcile_states: BTreeMap::from([
            (VmName::new("_DB-0"), suspicion(1, true)),
            (VmName::new("db-1"), suspicion(u64::MAX, false)),
        ]),
        ..State::default()
    }
}

/// Deletions were stored later than everything in the rich state.
pub(crate) fn departed_state() -> State {
    let deleted = Event {
        departed: BTreeSet::from([VmName::new("db-0"), VmName::new("_DB-2")]),
        ..Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW))
    };
    State { history: VecDeque::from([deleted.into()]), ..State::default() }
}

/// Drills were stored later than everything in the rich state.
pub(crate) fn drilled_state() -> State {
    let drill = |id: &str, mode, ending| Event {
        ending,
        drill: Some(Drill { mode, who: "uid 1000 on db-0".into() }),
        seen_by: BTreeSet::new(),
        ..Event::first_seen_as(announcement(id), VmName::new("db-1"), Timestamp(NOW))
    };
    let hooks = postgres().hooks.into_iter().map(|hook| Hook { can_dry_run: true, ..hook }).collect();
    let replica = Replica { workloads: vec![Workload { hooks, ..postgres() }], ..Replica::default() };
    let open = drill("drill-3", Mode::DryRun, None);
    State {
        replicas: BTreeMap::from([(VmName::new("db-0"), replica.into())]),
        open: BTreeMap::from([(open.announcement.id.clone(), open.into())]),
        history: VecDeque::from([
            drill("drill-1", Mode::Rehearsal, Some(Ending::Drilled)).into(),
            drill("drill-2", Mode::Rehearsal, Some(Ending::Interrupted)).into(),
        ]),
        ..State::default()
    }
}

/// Operator actions were stored later than deletions.
pub(crate) fn wished_state() -> State {
    let all = [
        OperatorAction::Hold { until: Timestamp(NOW + 60_000), no_hooks: true },
        OperatorAction::Release,
        OperatorAction::Approve { revision: 7, over_budget: true },
        OperatorAction::Pause { until: Timestamp(NOW + 1) },
        OperatorAction::Resume,
        OperatorAction::ClusterChange("leadership to go to db-1".into()),
    ];
    let wish = |(number, what)| OperatorRecord {
        number,
        at: Timestamp(NOW),
        who: "uid 0 on db-0".into(),
        reason: if number == 6 { String::new() } else { "backup – until noon".into() },
        what,
    };
    let mut wishes: Vec<OperatorRecord> = (1..).zip(all).map(wish).collect();
    let of_all = wishes.split_off(3);
    let skipped = Waiver {
        member: member("postgres"),
        hook: HookId { phase: Phase::Failover, key: 0 },
        why: WaiverReason::Skipped { who: "uid 0 on db-0".into(), reason: "done by hand".into() },
        at: Timestamp(NOW),
    };
    let event = Event {
        operator_records: wishes,
        waivers: vec![skipped],
        claims: vec![claim(9, Reason::Operator, None)],
        ..Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW))
    };
    State { history: VecDeque::from([event.into()]), operator_seq: 7, operator_records: of_all, ..State::default() }
}

/// Retries were stored later than members.
pub(crate) fn retried_state() -> State {
    let hook = HookId { phase: Phase::Failover, key: 7 };
    state_with(OperatorAction::Retry { member: member("postgres"), hook, after: AttemptId(12) })
}

/// Early preparations were stored later than retries.
pub(crate) fn prepared_state() -> State {
    state_with(OperatorAction::Prepare { from: Timestamp(NOW), revision: 4 })
}

fn state_with(what: OperatorAction) -> State {
    let record = OperatorRecord {
        number: 8,
        at: Timestamp(NOW),
        who: "ada (uid 0) on db-0".into(),
        reason: "the standby is up".into(),
        what,
    };
    let event = Event {
        operator_records: vec![record],
        ..Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW))
    };
    State { history: VecDeque::from([event.into()]), operator_seq: 8, ..State::default() }
}

pub(crate) fn told() -> Vec<Delivery> {
    let of = |notice: &str, receiver: &str| Delivery { notice: notice.into(), receiver: receiver.into() };
    vec![of("A-1@1/announced", "chat"), of("A-1@1/announced", "grid"), of("db-1/channel_stalled/490896", "chat")]
}

/// Members were stored later than everything in the rich state.
pub(crate) fn members_state() -> State {
    let slot = |stint, state| Slot {
        stint,
        first_stint: 1,
        state,
        since: Timestamp(NOW + 1),
        group: (stint > 1).then(|| GroupName("orders-db".into())),
        events: BTreeSet::from([EventId::new("A-1"), EventId::new("b-2")]),
        by: EventId::new("A-1"),
        was_fit: stint > 1,
        restore_failed: stint == 3,
        needs_restore: stint == 2,
    };
    let called = Event {
        slots_since: Some(Timestamp(NOW)),
        stuck_since: Some(Timestamp(NOW + 1)),
        times_given_back: 2,
        is_deferred: true,
        last_call_since: Some(Timestamp(NOW + 2)),
        former_calls: vec![Timestamp(NOW + 1)],
        decided_at_revision: 3,
        reopened: Some(Timestamp(NOW + 3)),
        halted_until: None,
        ..Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW))
    };
    let ready = |readiness| Condition { readiness, ..Condition::default() };
    let replica = Replica {
        unreachable: Some(Timestamp(NOW)),
        conditions: BTreeMap::from([
            (WorkloadName("cache".into()), ready(Readiness::Ready)),
            (WorkloadName("postgres".into()), ready(Readiness::NotReady)),
        ]),
        ..Replica::default()
    };
    let slots = SlotState::ALL.into_iter().zip(1..).zip(["cache", "other", "postgres", "queue"]);
    State {
        replicas: BTreeMap::from([(VmName::new("db-0"), replica.into())]),
        open: BTreeMap::from([(EventId::new("A-1"), called.into())]),
        slots: slots.map(|((state, stint), name)| (member(name), slot(stint, state))).collect(),
        stints: 4,
        ..State::default()
    }
}

/// An event that gave its slots back.
pub(crate) fn waiting_state() -> State {
    let gave_back = vec![Timestamp(NOW), Timestamp(NOW + 1)];
    let announced = Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW));
    let event = Event { gave_back, ..announced };
    State { open: BTreeMap::from([(EventId::new("A-1"), event.into())]), ..State::default() }
}

/// An event that an operator holds.
pub(crate) fn held_state() -> State {
    let announced = Event::first_seen_as(announcement("A-1"), VmName::new("db-1"), Timestamp(NOW));
    let event = Event { halted_until: Some(Timestamp(NOW + 1)), ..announced };
    State { open: BTreeMap::from([(EventId::new("A-1"), event.into())]), ..State::default() }
}

pub(crate) fn notified_state() -> State {
    let noted = |receivers: &[&str]| DeliveryRecord {
        at: Timestamp(NOW),
        receivers: receivers.iter().map(|name| (*name).into()).collect(),
    };
    let notices = [("A-1@1/announced", noted(&["chat", "grid"])), ("db-1/channel_stalled/490896", noted(&["chat"]))];
    State { deliveries: notices.map(|(id, noted)| (id.into(), noted)).into(), ..State::default() }
}
