//! Limits which the state never exceeds.

use std::collections::{BTreeMap, BTreeSet};

use allclear::core::apply::apply;
use allclear::core::apply::report::beyond_the_limit;
use allclear::core::isolation::approval::forecast;
use allclear::core::model::command::{
    ApplyResult, Command, DeregisterSession, Entry, RegisterSession, RegisterWorkloads, Rejection, ReportDocument,
    RequestAction,
};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::id::{EventId, VmName, WorkloadName};
use allclear::core::model::isolated_blocker::ApprovalForecast;
use allclear::core::model::isolated_blocker::IsolatedBlocker;
use allclear::core::model::isolation::IsolatedView;
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::operator::{OPERATOR_RECORD_LIMIT, OperatorRequest};
use allclear::core::model::state::{HISTORY_AGE, HISTORY_LIMIT, OPEN_LIMIT, State, WORKLOAD_LIMIT};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{OnAbsent, Origin, Workload};
use allclear::core::planning_input::{PlanningInput, Timing};
use allclear::core::policy::Policy;

pub(crate) fn announcement(number: usize) -> Announcement {
    Announcement {
        id: EventId::new(&format!("e{number}")),
        status: Status::Scheduled,
        kind: EventType::Reboot,
        source: Source::Platform,
        resource_type: "VirtualMachine".into(),
        resources: vec![VmName::new("a")],
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    }
}

pub(crate) fn commit(state: &mut State, command: Command) {
    let entry = Entry { at: Timestamp(0), by: VmName::new("a"), command };
    assert_eq!(apply(state, &entry), ApplyResult::Applied);
}

pub(crate) fn report(state: &mut State, numbers: impl Iterator<Item = usize>) {
    let after = state.replicas[&VmName::new("a")].reports;
    commit(
        state,
        Command::ReportDocument(ReportDocument { after, document: Document::new(numbers.map(announcement).collect()) }),
    );
}

#[test]
fn the_history_keeps_the_latest_events_only() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    let batches = HISTORY_LIMIT / 100 + 2;
    for batch in 0..batches {
        report(&mut state, batch * 100..(batch + 1) * 100);
    }
    report(&mut state, 0..0);
    assert_eq!(state.history.len(), HISTORY_LIMIT);
    assert!(state.event(&EventId::new("e0")).is_none());
    assert!(state.event(&EventId::new(&format!("e{}", batches * 100 - 1))).is_some());
}

#[test]
fn an_event_that_flaps_does_not_grow_without_end() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    for round in 0..2_000 {
        let status = if round % 2 == 0 { Status::Scheduled } else { Status::Started };
        let after = state.replicas[&VmName::new("a")].reports;
        let shown = Announcement { status, ..announcement(1) };
        commit(&mut state, Command::ReportDocument(ReportDocument { after, document: Document::new(vec![shown]) }));
    }
    let event = &state.open[&EventId::new("e1")];
    assert!(event.entered.len() <= 202, "{} stages", event.entered.len());
    assert_eq!(event.stage(), Stage::Started, "a start is not taken back any more");
    // The event is gone and comes back: the state has forgotten the event.
    report(&mut state, 0..0);
    report(&mut state, 1..2);
    let event = &state.open[&EventId::new("e1")];
    assert_eq!((event.entered.len(), event.stage()), (1, Stage::Announced));
}

#[test]
fn the_history_keeps_events_until_they_are_old() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    report(&mut state, 0..1);
    report(&mut state, 1..2);
    let closes = |state: &mut State, at: Timestamp| {
        let document = Document::new(vec![]);
        let after = state.replicas[&VmName::new("a")].reports;
        let entry =
            Entry { at, by: VmName::new("a"), command: Command::ReportDocument(ReportDocument { after, document }) };
        assert_eq!(apply(state, &entry), ApplyResult::Applied);
    };
    let known = |state: &State, id: &str| state.event(&EventId::new(id)).is_some();
    assert!(known(&state, "e0"), "it was closed just now");
    closes(&mut state, Timestamp(0).plus(HISTORY_AGE));
    assert!(known(&state, "e0") && known(&state, "e1"), "it is as old as it may be");
    report(&mut state, 2..3);
    closes(&mut state, Timestamp(1).plus(HISTORY_AGE));
    assert!(!known(&state, "e0") && known(&state, "e1") && known(&state, "e2"));
}

#[test]
fn events_beyond_the_limit_are_taken_up_when_there_is_room() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    report(&mut state, 0..OPEN_LIMIT + 5);
    assert_eq!(state.open.len(), OPEN_LIMIT);
    assert_eq!(beyond_the_limit(&state).len(), 5, "whoever looks is told of them");
    let open: Vec<usize> = (0..OPEN_LIMIT + 5).filter(|n| state.open.contains_key(&announcement(*n).id)).collect();
    // Five open events are gone, the rest is listed as before.
    report(&mut state, (0..OPEN_LIMIT + 5).filter(|number| !open[..5].contains(number)));
    assert_eq!((state.open.len(), state.history.len()), (OPEN_LIMIT, 5));
    assert!(beyond_the_limit(&state).is_empty());
}

#[test]
fn a_closed_event_that_is_listed_again_is_taken_up_when_there_is_room() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    report(&mut state, 0..1);
    report(&mut state, 1..=OPEN_LIMIT);
    assert_eq!((state.open.len(), state.history.len()), (OPEN_LIMIT, 1));
    report(&mut state, 0..=OPEN_LIMIT);
    report(&mut state, 0..OPEN_LIMIT);
    let event = &state.open[&announcement(0).id];
    assert_eq!((event.stage(), event.ending), (Stage::Preparing, None));
    assert_eq!((state.open.len(), state.history.len()), (OPEN_LIMIT, 1));
}

/// The planning input of an isolated replica, with a user-initiated event in the document.
fn cut_off() -> PlanningInput {
    let listed = Announcement { source: Source::User, ..announcement(OPEN_LIMIT) };
    let me = VmName::new("a");
    let voters = vec![me.clone(), VmName::new("b")];
    let document = Some(Document::new(vec![listed]));
    let alone = IsolatedView { voters: voters.clone(), document, ..IsolatedView::default() };
    PlanningInput {
        now: Timestamp(0),
        me,
        members: voters,
        learners: BTreeSet::new(),
        versions: BTreeMap::new(),
        peers: BTreeMap::new(),
        quorum: false,
        leading_since: Timestamp(0),
        leader: None,
        isolated: Some(alone),
        policy: Policy::default(),
        timing: Timing::default(),
    }
}

#[test]
fn an_event_beyond_the_limit_is_not_approved_alone_either() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    let obstacle = |state: &State| match forecast(state, &cut_off(), &announcement(OPEN_LIMIT).id) {
        Some(ApprovalForecast::Not(obstacle)) => Some(obstacle),
        Some(ApprovalForecast::From(_)) | None => None,
    };
    report(&mut state, 0..OPEN_LIMIT);
    assert_eq!(obstacle(&state), Some(IsolatedBlocker::NotTakenUp));
    report(&mut state, 0..OPEN_LIMIT - 1);
    assert_ne!(obstacle(&state), Some(IsolatedBlocker::NotTakenUp));
}

pub(crate) fn ask(state: &mut State, what: OperatorRequest) {
    commit(state, Command::RequestAction(RequestAction { what, who: "uid 0 on a".into(), reason: "why not".into() }));
}

#[test]
fn the_latest_wishes_are_kept_and_whatever_is_in_force() {
    let mut state = State::default();
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    report(&mut state, 0..1);
    let event = announcement(0).id;
    ask(&mut state, OperatorRequest::Pause { until: Timestamp(1) });
    for _ in 0..2 * OPERATOR_RECORD_LIMIT {
        ask(&mut state, OperatorRequest::ClusterChange { what: "leadership to go to b".into() });
        ask(&mut state, OperatorRequest::Hold { event: event.clone(), until: Timestamp(1), no_hooks: false });
    }
    assert_eq!(
        (state.operator_records.len(), state.open[&event].operator_records.len()),
        (OPERATOR_RECORD_LIMIT, OPERATOR_RECORD_LIMIT)
    );
    assert_eq!(state.pause(Timestamp(0)).map(|pause| pause.number), Some(1));
    assert_eq!(state.open[&event].hold(Timestamp(0)).map(|hold| hold.number), Some(state.operator_seq));
}

#[test]
fn workloads_beyond_the_limit_do_not_dial_in_until_there_is_room() {
    let mut state = State::default();
    let name = |number: usize| WorkloadName(format!("w{number}"));
    let workload = |number, origin| {
        let (group, after, hooks, on_absent) = (None, Vec::new(), Vec::new(), OnAbsent::Hold);
        Workload { name: name(number), group, after, hooks, origin, on_absent }
    };
    let enlist =
        |number| Command::RegisterSession(RegisterSession { workload: workload(number, Origin::Session { owner: 0 }) });
    let workloads = vec![workload(0, Origin::Configured), workload(1, Origin::Configured)];
    commit(&mut state, Command::RegisterWorkloads(RegisterWorkloads { workloads, groups: Vec::new() }));
    for number in 1..WORKLOAD_LIMIT {
        commit(&mut state, enlist(number));
    }
    let entry = |number| Entry { at: Timestamp(0), by: VmName::new("a"), command: enlist(number) };
    assert_eq!(apply(&mut state, &entry(WORKLOAD_LIMIT)), ApplyResult::Rejected(Rejection::TooManyWorkloads));
    assert_eq!(apply(&mut state, &entry(0)), ApplyResult::Applied, "it stands for a configured one");
    commit(&mut state, Command::DeregisterSession(DeregisterSession { workload: name(7), forced: false }));
    assert_eq!(apply(&mut state, &entry(WORKLOAD_LIMIT)), ApplyResult::Applied);
}
