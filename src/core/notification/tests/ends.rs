//! How notified waits end: resolved only when what the event waited for is done, or no longer needed.

use super::*;
use crate::model::command::RecordReachability;
use crate::model::event::Ending;
use crate::model::id::GroupName;
use crate::notification::wait_end::WaitEnd::{Resolved, Unresolved};
use crate::notification::wait_end::{WaitEnd, wait_end};
use alloc::borrow::ToOwned as _;
use alloc::sync::Arc;

/// The ends of notified waits, once they have lasted.
fn ends_at(state: &State, at: Timestamp) -> Vec<(NotificationKind, String)> {
    let mut waits = BlockedSince::default();
    let last = at.plus(ENDED_AFTER);
    for at in [at, last] {
        waits.update(state, &input(at));
    }
    let all = due(state, &input(last), &waits, MINUTE).into_iter();
    all.filter_map(|notice| Some((notice.kind, notice.closes()?.to_owned()))).collect()
}

/// A cluster with a failed drain of which the receiver was told, and the id of the notification.
fn told_of_failure() -> (State, String) {
    let mut state = with_failed_drain();
    let told = format!("e@{}/blocked/hook_failed/a/w/drain", SEEN.0);
    note(&mut state, SEEN, &[(&told, "chat")]);
    (state, told)
}

fn the_event(state: &mut State) -> &mut Event {
    Arc::make_mut(state.open.get_mut(&EventId::new("e")).unwrap())
}

fn request(state: &mut State, what: OperatorRequest) {
    let asked = Command::RequestAction(RequestAction { what, who: "ada".into(), reason: "room was made".into() });
    assert_eq!(apply(state, &Entry { at: SEEN, by: vm("a"), command: asked }), ApplyResult::Applied);
}

fn end_of(state: &State, what: &str) -> Option<WaitEnd> {
    wait_end(state, &state.open[&EventId::new("e")], what, &input(SEEN.plus(MINUTE)))
}

#[test]
fn a_hook_that_failed_is_not_resolved_because_the_event_starts() {
    let at = SEEN.plus(15 * MINUTE);
    let (mut state, told) = told_of_failure();
    assert_eq!(ends_at(&state, SEEN.plus(MINUTE)), []);
    the_event(&mut state).entered.push((Stage::Started, at));
    assert_eq!(ends_at(&state, at), [(NotificationKind::Unresolved, told.clone())]);
    the_event(&mut state).entered.push((Stage::Restoring, at.plus(MINUTE)));
    assert_eq!(ends_at(&state, at.plus(MINUTE)), [(NotificationKind::Unresolved, told)]);
}

#[test]
fn a_hook_that_is_done_or_that_an_operator_decides_about_is_resolved() {
    let (event, started) = (EventId::new("e"), SEEN.plus(15 * MINUTE));
    let resolved = |state: &mut State, told: &str| {
        assert_eq!(ends_at(state, SEEN.plus(MINUTE)), [(NotificationKind::Resolved, told.to_owned())]);
        the_event(state).entered.push((Stage::Started, started));
        assert_eq!(ends_at(state, started), [(NotificationKind::Resolved, told.to_owned())]);
    };
    let (mut state, told) = told_of_failure();
    let (member, hook) = the_drain(&state);
    request(&mut state, OperatorRequest::Skip { event: event.clone(), member: member.clone(), hook });
    resolved(&mut state, &told);
    let (mut state, told) = told_of_failure();
    let revision = the_event(&mut state).revision;
    request(&mut state, OperatorRequest::Approve { event: event.clone(), revision, over_budget: false });
    resolved(&mut state, &told);
    // A retry alone mends nothing.
    let (mut state, told) = told_of_failure();
    request(&mut state, OperatorRequest::Retry { event, member, hook });
    assert_eq!(ends_at(&state, SEEN.plus(MINUTE)), []);
    run_drain(&mut state, Outcome::Done);
    resolved(&mut state, &told);
}

#[test]
fn an_event_that_goes_away_in_time_resolves_its_waits_and_one_that_nobody_knows_about_does_not() {
    let (state, told) = told_of_failure();
    let gone = |ending, at: Timestamp| {
        let mut state = state.clone();
        let event = the_event(&mut state);
        event.entered.extend([(Stage::Restoring, at), (Stage::Closed, at)]);
        event.ending = Some(ending);
        let closed = state.open.remove(&EventId::new("e")).unwrap();
        state.history.push_back(closed);
        ends_at(&state, at)
    };
    let ends = SEEN.plus(15 * MINUTE);
    assert_eq!(gone(Ending::Cancelled, SEEN.plus(MINUTE)), [(NotificationKind::Resolved, told.clone())]);
    assert_eq!(gone(Ending::Cancelled, ends), [(NotificationKind::Unresolved, told.clone())]);
    assert_eq!(gone(Ending::Forgotten, SEEN.plus(MINUTE)), [(NotificationKind::Unresolved, told)]);
}

#[test]
fn an_approval_ends_every_wait_but_resolves_no_hook() {
    let mut state = with_failed_drain();
    let hook = "hook_blocked/a/w/drain";
    let all = ["deciding", "hold", "budget/2", "no_healthy_channel", "post_failed", "views_differ", hook];
    the_event(&mut state).entered.extend([(Stage::Claimed, SEEN), (Stage::Approved, SEEN)]);
    assert_eq!(
        all.map(|what| end_of(&state, what)),
        [[Some(Resolved); 6].as_slice(), &[Some(Unresolved)]].concat()[..]
    );
    // The event starts at the end of its notice.
    the_event(&mut state).entered.splice(1.., [(Stage::Started, SEEN)]);
    assert_eq!(all.map(|what| end_of(&state, what)), [Some(Unresolved); 7]);
    // Before that, a post that is tried again, and a hook that runs again, have no end yet.
    the_event(&mut state).entered.truncate(1);
    assert_eq!(
        ["deciding", "hold", "post_failed", hook].map(|what| end_of(&state, what)),
        [Some(Resolved), Some(Resolved), None, None]
    );
}

#[test]
fn a_last_call_over_the_limit_of_the_group_resolves_nothing() {
    let mut state = with(event());
    let workload = || Workload {
        name: WorkloadName("w".into()),
        group: Some(GroupName("g".into())),
        after: Vec::new(),
        hooks: alloc::vec![Hook::of(Phase::Drain)],
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    let commit = |state: &mut State, by: &str, command| {
        assert_eq!(apply(state, &Entry { at: SEEN, by: vm(by), command }), ApplyResult::Applied);
    };
    for by in ["a", "b"] {
        let registered = RegisterWorkloads { workloads: alloc::vec![workload()], groups: Vec::new() };
        commit(&mut state, by, Command::RegisterWorkloads(registered));
    }
    let reach = |reachable| Command::RecordReachability(RecordReachability { replica: vm("b"), reachable });
    commit(&mut state, "a", reach(false));
    the_event(&mut state).treatment = Some(treatment_of(&Policy::default(), &announcement(), &[vm("a")], SEEN));
    assert_eq!(end_of(&state, "budget"), None);
    (the_event(&mut state).slots_since, the_event(&mut state).last_call_since) = (Some(SEEN), Some(SEEN));
    assert_eq!(end_of(&state, "budget"), None);
    commit(&mut state, "a", reach(true));
    assert_eq!(end_of(&state, "budget"), Some(Resolved));
}

#[test]
fn whoever_is_told_of_good_ends_is_told_of_the_others() {
    let blocked = Notification::blocked(&event(), "hold", SEEN);
    // No receiver is told of both ends.
    assert_eq!(blocked.unresolved(SEEN).id, blocked.resolved(SEEN).id);
    let topics = [NotificationKind::Blocked, NotificationKind::Resolved, NotificationKind::Unresolved];
    let is_of = |notice: &Notification| topics.map(|topic| notice.is_of(&[topic].into()));
    assert_eq!(is_of(&blocked.unresolved(SEEN)), [false, true, true]);
    assert_eq!(is_of(&blocked.resolved(SEEN)), [false, true, false]);
}
