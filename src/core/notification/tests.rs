//! The due notifications, and their ids.

mod ends;
mod waits;

use super::*;
use crate::apply::apply;
use crate::apply::notification::tests::note;
use crate::model::attempt::Outcome;
use crate::model::claim::{Claim, PostOutcome, Reason};
use crate::model::command::{ApplyResult, Command, Entry};
use crate::model::command::{BeginAttempt, ChooseTreatment, FinishAttempt, RequestAction};
use crate::model::command::{RegisterSession, RegisterWorkloads, ReportDocument};
use crate::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use crate::model::drill::{Drill, Mode};
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, WorkloadName};
use crate::model::isolated_approval::IsolatedApproval;
use crate::model::operator::OperatorRequest;
use crate::model::workload::{Hook, Intent, OnAbsent, Origin, Phase, Workload};
use crate::planning_input::{PeerHealth, Timing};
use crate::policy::{Policy, treatment_of};
use alloc::collections::BTreeSet;

const SEEN: Timestamp = Timestamp(1_000_000_000);
const MINUTE: Duration = Duration::from_mins(1);

fn vm(name: &str) -> VmName {
    VmName::new(name)
}

fn announcement() -> Announcement {
    Announcement {
        id: EventId::new("e"),
        status: Status::Scheduled,
        kind: EventType::Reboot,
        source: Source::User,
        resource_type: String::new(),
        resources: alloc::vec![vm("a")],
        not_before: NotBefore::At(SEEN.plus(15 * MINUTE)),
        description: String::new(),
        duration: None,
    }
}

fn event() -> Event {
    Event::first_seen_as(announcement(), vm("a"), SEEN)
}

/// A cluster in which `a` lists the event.
fn with(event: Event) -> State {
    let mut state = State::default();
    for command in [
        Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }),
        Command::ReportDocument(ReportDocument { after: 0, document: Document::new(alloc::vec![announcement()]) }),
    ] {
        assert_eq!(apply(&mut state, &Entry { at: SEEN, by: vm("a"), command }), ApplyResult::Applied);
    }
    state.open.insert(event.announcement.id.clone(), event.into());
    state
}

fn input(now: Timestamp) -> PlanningInput {
    let members = [vm("a"), vm("b")];
    let contact = PeerHealth {
        reachable: true,
        since: SEEN,
        imds: ImdsHealth::Healthy,
        imds_since: SEEN,
        document_age: Some(Duration::ZERO),
        answers_in: Duration::ZERO,
        operator_seq: 0,
        can_acknowledge: false,
    };
    PlanningInput {
        now,
        me: vm("a"),
        peers: members.iter().map(|name| (name.clone(), contact)).collect(),
        members: members.into(),
        learners: BTreeSet::new(),
        versions: BTreeMap::new(),
        quorum: true,
        leading_since: SEEN,
        leader: None,
        isolated: None,
        policy: Policy::default(),
        timing: Timing::default(),
    }
}

fn ids(state: &State, input: &PlanningInput, waits: &BlockedSince) -> Vec<String> {
    due(state, input, waits, MINUTE).into_iter().map(|notice| notice.id).collect()
}

fn ids_at(state: &State, now: Timestamp) -> Vec<String> {
    ids(state, &input(now), &BlockedSince::default())
}

/// A cluster in which the drain of `w` on `a` has failed.
fn with_failed_drain() -> State {
    let mut state = State::default();
    let drain = Hook { max_attempts: 1, ..Hook::of(Phase::Drain) };
    let w = Workload {
        name: WorkloadName("w".into()),
        group: None,
        after: Vec::new(),
        hooks: alloc::vec![drain],
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    let registered = RegisterWorkloads { workloads: alloc::vec![w], groups: Vec::new() };
    let treatment = treatment_of(&Policy::default(), &announcement(), &[vm("a")], SEEN);
    for command in [
        Command::RegisterWorkloads(registered),
        Command::ReportDocument(ReportDocument { after: 0, document: Document::new(alloc::vec![announcement()]) }),
        Command::ChooseTreatment(ChooseTreatment { event: EventId::new("e"), treatment }),
    ] {
        assert_eq!(apply(&mut state, &Entry { at: SEEN, by: vm("a"), command }), ApplyResult::Applied);
    }
    fail_drain(&mut state);
    state
}

fn the_drain(state: &State) -> (Member, HookId) {
    let workload = &state.replicas[&vm("a")].workloads[0];
    (workload.on(&vm("a")), workload.hooks_of(Phase::Drain).next().unwrap().0)
}

fn fail_drain(state: &mut State) {
    run_drain(state, Outcome::Failed("the disk is full".into()));
}

fn run_drain(state: &mut State, outcome: Outcome) {
    let (member, hook) = the_drain(state);
    let (event, on, deadline) = (EventId::new("e"), vm("a"), SEEN.plus(MINUTE));
    let begun = BeginAttempt { event: event.clone(), member, hook, intent: Intent::Run, on, deadline };
    assert_eq!(
        apply(state, &Entry { at: SEEN, by: vm("a"), command: Command::BeginAttempt(begun) }),
        ApplyResult::Applied
    );
    let attempt = state.open[&event].attempts.last().unwrap().id;
    let ended = FinishAttempt { event, attempt, outcome };
    assert_eq!(
        apply(state, &Entry { at: SEEN, by: vm("a"), command: Command::FinishAttempt(ended) }),
        ApplyResult::Applied
    );
}

#[test]
fn a_whole_life_is_told_in_its_order_and_an_hour_later_nothing_is() {
    let accepted = Claim {
        decided_at_revision: 1,
        attempt: AttemptId(1),
        approver: vm("b"),
        reason: Reason::Prepared,
        stints: Vec::new(),
        at: SEEN.plus(MINUTE),
        until: SEEN.plus(2 * MINUTE),
        outcome: Some((PostOutcome::Accepted, SEEN.plus(MINUTE))),
        is_last_resort: false,
    };
    let mut event = event();
    event.claims.push(accepted);
    let stages = [Stage::Claimed, Stage::Approved, Stage::Started, Stage::Closed];
    event.entered.extend(stages.into_iter().zip(1_u32..).map(|(stage, minutes)| (stage, SEEN.plus(minutes * MINUTE))));
    let state = State { history: [event.into()].into(), ..State::default() };
    let all = ["announced", "all_clear", "started", "closed"].map(|topic| format!("e@{}/{topic}", SEEN.0));
    assert_eq!(ids_at(&state, SEEN.plus(4 * MINUTE)), all);
    assert_eq!(ids_at(&state, SEEN.plus(2 * MINUTE)), all[..2]);
    assert_eq!(ids_at(&state, SEEN.plus(61 * MINUTE)), all[1..]);
    assert_eq!(ids_at(&state, SEEN.plus(65 * MINUTE)), [""; 0]);
}

#[test]
fn a_drill_is_told_to_nobody() {
    let drill = Some(Drill { mode: Mode::Rehearsal, who: "uid 0".into() });
    assert_eq!(ids_at(&with(Event { drill, ..event() }), SEEN), [""; 0]);
}

#[test]
fn a_restore_and_a_channel_that_were_told_are_resolved_once_they_are_well() {
    let mut state = with_failed_drain();
    let hour = SEEN.0 / 3_600_000;
    let [stalled, later] = [hour, hour + 1].map(|hour| format!("b/channel_stalled/{hour}"));
    let told = |state: &State| -> Vec<String> {
        let all = ids_at(state, SEEN.plus(MINUTE)).into_iter();
        all.filter(|id| id.ends_with("/resolved") && !state.is_delivered(id, "chat")).collect()
    };
    assert_eq!(told(&state), [""; 0]);
    let first = ["a/w/restore_failed/7", &stalled];
    note(&mut state, SEEN, &first.map(|id| (id, "chat")));
    assert_eq!(told(&state), first.map(|id| format!("{id}/resolved")));
    let over = told(&state);
    note(&mut state, SEEN, &[(&over[0], "chat"), (&over[1], "chat")]);
    assert_eq!(told(&state), [""; 0]);
    // Another receiver may have been out of reach.
    let due = ids_at(&state, SEEN.plus(MINUTE));
    assert!(over.iter().all(|id| due.contains(id) && !state.is_delivered(id, "grid")), "{due:?}");
    // The same again, in another stint and another hour.
    let second = ["a/w/restore_failed/8", &later];
    note(&mut state, SEEN, &second.map(|id| (id, "chat")));
    assert_eq!(told(&state), second.map(|id| format!("{id}/resolved")));
    // Workloads that register themselves are members too.
    let session = Workload {
        name: WorkloadName("session".into()),
        group: None,
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Session { owner: 0 },
        on_absent: OnAbsent::Hold,
    };
    let command = Command::RegisterSession(RegisterSession { workload: session });
    assert_eq!(apply(&mut state, &Entry { at: SEEN, by: vm("a"), command }), ApplyResult::Applied);
    note(&mut state, SEEN, &[("a/session/restore_failed/1", "chat")]);
    assert_eq!(told(&state).remove(0), "a/session/restore_failed/1/resolved");
    state.deliveries.remove("a/session/restore_failed/1");
    // The member keeps its slot, because its `ready` hook may still fail.
    let (member, _) = the_drain(&state);
    let returning = Slot {
        stint: 8,
        first_stint: 8,
        state: SlotState::Returning,
        since: SEEN,
        group: None,
        events: BTreeSet::new(),
        by: EventId::new("e"),
        was_fit: true,
        restore_failed: false,
        needs_restore: true,
    };
    state.slots.insert(member.clone(), returning.clone());
    assert_eq!(told(&state), [format!("{later}/resolved")]);
    // An event that takes the member once more restores nothing.
    let again = Slot { stint: 9, state: SlotState::Leaving, ..returning };
    state.slots.insert(member, again);
    assert_eq!(told(&state), [format!("{later}/resolved")]);
}

#[test]
fn a_channel_that_stalls_again_within_the_hour_is_told_again() {
    let mut state = State::default();
    let stalled = |state: &State| {
        let mut input = input(SEEN.plus(MINUTE));
        for contact in input.peers.values_mut().take(1) {
            (contact.imds, contact.imds_since) = (ImdsHealth::Stalled, SEEN);
            contact.document_age = Some(MINUTE);
        }
        ids(state, &input, &BlockedSince::default())
    };
    let first = stalled(&state).remove(0);
    for number in 2..=NAMES {
        let name = stalled(&state).remove(0);
        note(&mut state, SEEN, &[(&name, "chat"), (&format!("{name}/resolved"), "chat")]);
        assert_eq!(stalled(&state), [format!("{first}/{number}")]);
    }
    // The number of names is bounded.
    let last = format!("{first}/{NAMES}");
    note(&mut state, SEEN, &[(&last, "chat"), (&format!("{last}/resolved"), "chat")]);
    assert_eq!(stalled(&state), [last]);
}

#[test]
fn an_approval_given_alone_is_told_by_its_giver_first_and_under_one_id() {
    let takeover = |outcome| IsolatedApproval {
        approver: vm("b"),
        at: Timestamp(7),
        alone_since: Timestamp(3),
        out_of_reach: alloc::vec![vm("a")],
        requested_by: None,
        outcome: Some((outcome, SEEN)),
        recorded: Some(SEEN),
    };
    let state = with(Event { isolated_approvals: alloc::vec![takeover(PostOutcome::Accepted)], ..event() });
    let own = Notification::alone(&EventId::new("e"), &vm("b"), Timestamp(7), Timestamp(7));
    let told = |now| ids_at(&state, now).contains(&own.id);
    assert!(!told(SEEN) && told(SEEN.plus(ACCOUNT_FIRST)));
    let refused = with(Event { isolated_approvals: alloc::vec![takeover(PostOutcome::Refused(400))], ..event() });
    assert!(!ids_at(&refused, SEEN.plus(ACCOUNT_FIRST)).contains(&own.id));
}

#[test]
fn a_stalled_channel_has_one_id_whoever_leads() {
    let stalled = |now: Timestamp, channel_since| {
        let mut input = input(now);
        for contact in input.peers.values_mut().take(1) {
            contact.imds = ImdsHealth::Stalled;
            contact.imds_since = channel_since;
            contact.document_age = Some(now.since(SEEN));
        }
        ids(&State::default(), &input, &BlockedSince::default())
    };
    let by_one = stalled(SEEN.plus(MINUTE), SEEN.plus(MINUTE / 4));
    assert_eq!(by_one, [format!("a/channel_stalled/{}", SEEN.0 / 3_600_000)]);
    assert_eq!(stalled(SEEN.plus(9 * MINUTE), SEEN.plus(8 * MINUTE)), by_one);
    assert_eq!(stalled(SEEN.plus(60 * MINUTE), SEEN), [""; 0]);
}
