//! Tests of the sentences: times in the past, holds beside the notice, and responsibility.

mod hold;
mod hook;
mod platform;

use allclear_core::policy;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use allclear_core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear_core::model::drill::{Drill, Mode};
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::{AttemptId, WorkloadName};
use allclear_core::model::id::{GroupName, VmName};
use allclear_core::model::isolated_blocker::ApprovalForecast;
use allclear_core::model::isolated_blocker::IsolatedBlocker;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::isolation::{IsolatedView, PeerAnswer};
use allclear_core::model::operator::Suspension;
use allclear_core::model::slot::SlotCause;
use allclear_core::model::state::Replica;
use allclear_core::model::treatment::Opening;
use allclear_core::model::workload::{Hook, Intent, Member, OnAbsent, Origin, Phase, Workload};
use allclear_core::planning_input::{PeerHealth, Timing};
use allclear_core::policy::{Policy, Rule};

const SEEN: Timestamp = Timestamp(1_700_000_000_000);
const MINUTE: Duration = Duration::from_mins(1);

fn after(minutes: u32) -> Timestamp {
    SEEN.plus(MINUTE * minutes)
}

fn announced(id: &str, source: Source) -> Announcement {
    Announcement {
        id: EventId::new(id),
        status: Status::Scheduled,
        kind: EventType::Reboot,
        source,
        resource_type: String::new(),
        resources: vec![VmName::new("db-1")],
        not_before: NotBefore::At(after(15)),
        description: String::new(),
        duration: None,
    }
}

/// An event with the treatment chosen by policy.
pub(super) fn event(source: Source, rules: Vec<Rule>) -> Event {
    let mut event = Event::first_seen_as(announced("e-1", source), VmName::new("db-0"), SEEN);
    let policy = Policy { rules, ..Policy::default() };
    event.treatment = Some(policy::treatment_of(&policy, &event.announcement, &[VmName::new("db-1")], SEEN));
    event.slots_since = Some(SEEN);
    event
}

pub(super) fn input(minutes: u32) -> PlanningInput {
    let contact = |reachable| PeerHealth {
        reachable,
        since: SEEN,
        imds: ImdsHealth::Healthy,
        imds_since: SEEN,
        document_age: Some(Duration::ZERO),
        answers_in: Duration::ZERO,
        operator_seq: 0,
        can_acknowledge: false,
    };
    let members = ["db-0", "db-1", "db-2"].map(VmName::new);
    PlanningInput {
        now: after(minutes),
        me: VmName::new("db-0"),
        peers: BTreeMap::from([(members[0].clone(), contact(true)), (members[1].clone(), contact(false))]),
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

fn told(blocker: &Blocker, event: &Event, minutes: u32) -> shown::Blocker {
    shown(blocker, event, &State::default(), &input(minutes))
}

fn halt(minutes: u32) -> Suspension {
    Suspension {
        number: 0,
        by: "uid 0 on db-0".into(),
        until: after(minutes),
        reason: "backup".into(),
        no_hooks: false,
    }
}

fn drain() -> (Member, HookId) {
    let member = Member { vm: VmName::new("db-1"), workload: WorkloadName("postgres".into()) };
    (member, HookId { phase: Phase::Drain, key: 0 })
}

#[test]
fn a_missed_window_is_told_with_the_next_time() {
    let event = event(Source::Platform, Vec::new());
    let missed = Some(Opening { opens: after(0), closes: after(5) });
    let message = |missed| told(&Blocker::TooEarly { starts_at: after(10), missed }, &event, 6).message;
    let expected = format!(
        "the window from {} to {} has passed, and the event could not be prepared in that time; preparation starts at {}",
        rfc3339(after(0)),
        rfc3339(after(5)),
        rfc3339(after(10))
    );
    assert_eq!(message(missed), expected);
    assert_eq!(message(None), format!("the notice is long: preparation starts at {}", rfc3339(after(10))));
    let mut asked = event.clone();
    asked.operator_records.push(OperatorRecord {
        number: 1,
        at: SEEN,
        who: "ada".into(),
        reason: "the quiet hour".into(),
        what: OperatorAction::Prepare { from: after(10), revision: event.revision },
    });
    let asked = told(&Blocker::TooEarly { starts_at: after(10), missed: None }, &asked, 6).message;
    assert!(asked.starts_with("ada wants the preparation to start at") && asked.contains("the quiet hour"), "{asked}");
}

#[test]
fn a_drill_is_told_without_the_platform_and_without_an_approval() {
    let drill = Some(Drill { mode: Mode::Rehearsal, who: "uid 0".into() });
    let attempt = AttemptId(1);
    let (on, since, deadline, notice_ends) = (VmName::new("db-1"), SEEN, after(5), after(15));
    let (reason, retry_at) = (String::new(), after(2));
    for source in [Source::Platform, Source::User] {
        let event = Event { drill: drill.clone(), ..event(source, Vec::new()) };
        let (member, hook) = drain();
        let running = |expected_end| Blocker::HookRunning {
            attempt,
            member: member.clone(),
            hook,
            on: on.clone(),
            since,
            deadline,
            expected_end,
        };
        let all = [
            running(None),
            running(Some(after(2))),
            Blocker::HookFailed { member: member.clone(), hook, reason: reason.clone(), notice_ends },
            Blocker::HookNotRun { member: member.clone(), hook, notice_ends },
            Blocker::HookBlocked { member: member.clone(), hook, reason: reason.clone(), retry_at },
            Blocker::HookWaiting { member: member.clone(), hook, from: since },
            Blocker::WorkloadAway { member: member.clone(), hook, since, notice_ends },
            Blocker::ReplicaAway { member, hook, since: None, passed_over_at: None },
            Blocker::Budget { group: None, by: vec![SlotCause::Unreachable(on.clone())], notice_ends },
            Blocker::NoQuorum { forecast: None },
            Blocker::Deciding,
        ];
        for blocker in all {
            let told = told(&blocker, &event, 1);
            let text = format!("{}; {}; {}", told.message, told.next, told.resolved_by);
            assert!(!text.contains("Azure") && !text.contains("approve"), "{text}");
        }
    }
}

#[test]
fn what_has_passed_is_not_told_as_still_to_come() {
    let event = event(Source::Platform, Vec::new());
    let (member, hook) = drain();
    let failed = Blocker::HookFailed { member, hook, reason: "no".into(), notice_ends: event.notice_ends() };
    let (before, afterwards) = (told(&failed, &event, 14), told(&failed, &event, 16));
    assert_eq!(before.until, Some(rfc3339(after(15))));
    assert_eq!(
        before.next,
        "allclear does not approve the event; the hook does not run again by itself; Azure starts the event when the \
         notice ends"
    );
    assert_eq!(afterwards.until, None);
    assert!(afterwards.next.contains("the notice has ended"), "{}", afterwards.next);

    let (member, hook) = drain();
    let running = Blocker::HookRunning {
        attempt: AttemptId(1),
        member,
        hook,
        on: VmName::new("db-1"),
        since: SEEN,
        deadline: after(5),
        expected_end: Some(after(2)),
    };
    let early = told(&running, &event, 1);
    assert_eq!(early.until, Some(rfc3339(after(5))));
    assert!(early.next.contains(&format!("expects to end at {}", rfc3339(after(2)))), "{}", early.next);
    let late = told(&running, &event, 3);
    assert_eq!(late.until, Some(rfc3339(after(5))));
    assert!(late.next.contains(&format!("expected to end at {}", rfc3339(after(2)))), "{}", late.next);
    let waiting = |from| Blocker::HookWaiting { member: drain().0, hook: drain().1, from };
    assert_eq!(told(&waiting(SEEN), &event, 1).until, None);
}

#[test]
fn other_events_are_told_by_what_they_are_and_voters_by_their_names() {
    let mut state = State::default();
    let other = Event::first_seen_as(announced("e-2", Source::User), VmName::new("db-0"), SEEN);
    state.open.insert(EventId::new("e-2"), other.into());
    let event = event(Source::User, Vec::new());
    let by = vec![SlotCause::Event(EventId::new("e-2")), SlotCause::Unreachable(VmName::new("db-2"))];
    let budget = Blocker::Budget { group: Some(GroupName("orders".into())), by, notice_ends: event.notice_ends() };
    let members = input(1).members;
    let isolated = Some(IsolatedView { voters: members, ..IsolatedView::default() });
    let message_of = |blocker: &Blocker| {
        shown(blocker, &event, &state, &PlanningInput { isolated: isolated.clone(), ..input(1) }).message
    };
    let expected = "Reboot of db-1 (event e-2), db-2 (unreachable)";
    assert!(message_of(&budget).ends_with(expected), "{}", message_of(&budget));
    let refused =
        Blocker::NoQuorum { forecast: Some(ApprovalForecast::Not(IsolatedBlocker::OtherEvent(EventId::new("e-2")))) };
    let message = message_of(&refused);
    assert!(message.contains("reach each other: db-1 and db-2 are unreachable"), "{message}");
    assert!(message.ends_with("because Reboot of db-1 (event e-2) is open in the same group"), "{message}");
}

#[test]
fn an_election_is_not_told_as_a_loss_and_what_was_made_up_does_not_start() {
    let mut event = event(Source::Platform, Vec::new());
    let peer = PeerAnswer { leader: None, channel: ImdsHealth::Healthy };
    let reached = BTreeMap::from([(VmName::new("db-1"), peer)]);
    let isolated = Some(IsolatedView { voters: input(1).members, reached, ..IsolatedView::default() });
    let input = PlanningInput { isolated, quorum: false, ..input(1) };
    let without_quorum = |event: &Event| shown(&Blocker::NoQuorum { forecast: None }, event, &State::default(), &input);
    assert!(
        without_quorum(&event).message.starts_with("there is no leader at this moment"),
        "{:?}",
        without_quorum(&event)
    );
    assert_eq!(without_quorum(&event).until, Some(rfc3339(after(15))));
    event.drill = Some(Drill { mode: Mode::Rehearsal, who: "uid 0 on db-0".into() });
    assert_eq!(
        (without_quorum(&event).next.as_str(), without_quorum(&event).until),
        ("when a quorum is back, the event continues from its present stage", None)
    );
}

#[test]
fn without_a_quorum_it_is_told_what_others_may_do_and_when_an_operator_may_act() {
    let event = event(Source::User, Vec::new());
    let (Member { vm, workload: name }, _) = drain();
    let pg = Workload {
        name,
        group: None,
        after: Vec::new(),
        hooks: vec![Hook::of(Phase::Failover)],
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    let mut state = State::default();
    state.replicas.insert(vm, Replica { workloads: vec![pg], ..Replica::default() }.into());
    let next_of = |voters: &[&str], obstacle| {
        let isolated = IsolatedView {
            since: after(1),
            voters: voters.iter().copied().map(VmName::new).collect(),
            document: Some(Document::new(vec![event.announcement.clone()])),
            ..IsolatedView::default()
        };
        let input = PlanningInput { isolated: Some(isolated), quorum: false, ..input(1) };
        let blocker = Blocker::NoQuorum { forecast: Some(ApprovalForecast::Not(obstacle)) };
        shown(&blocker, &event, &state, &input).next
    };
    let of_three = next_of(&["db-0", "db-1", "db-2"], IsolatedBlocker::NotAPair);
    assert!(of_three.starts_with("the other voters may approve the event at any moment"), "{of_three}");
    let of_two = next_of(&["db-0", "db-1"], IsolatedBlocker::HookFailed);
    let from = rfc3339(after(1).plus(Timing::default().takeover_after));
    let wanted = format!("; from {from} on, an operator may approve the event on this replica alone; otherwise Azure");
    assert!(of_two.contains(&wanted) && !of_two.contains("other voters"), "{of_two}");
    // Of three voters the others may move the primary.
    let by_hand = "no further hook begins, and hooks begin at once when a quorum is back: if the primary is on the VM, \
                   stop allclear on that VM, once no hook of the event runs, and then move the primary by hand";
    assert!(of_two.contains(by_hand) && !of_three.contains(by_hand), "{of_two}");
}
