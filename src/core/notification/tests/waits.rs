//! Which waits are told, and when a wait is resolved.

use super::*;
use crate::model::operator::Suspension;

#[test]
fn an_event_is_blocked_when_it_has_waited_for_the_same_for_long_enough() {
    let (state, mut waits) = (with(event()), BlockedSince::default());
    let blocked = |waits: &BlockedSince, now| ids(&state, &input(now), waits).into_iter().skip(1).collect::<Vec<_>>();
    waits.update(&state, &input(SEEN));
    waits.update(&state, &input(SEEN.plus(MINUTE / 2)));
    assert_eq!(blocked(&waits, SEEN.plus(Duration::from_millis(59_999))), [""; 0]);
    let id = format!("e@{}/blocked/deciding", SEEN.0);
    assert_eq!(blocked(&waits, SEEN.plus(MINUTE)), [id]);
    // The event waits for another reason in between.
    waits.update(&State::default(), &input(SEEN.plus(MINUTE)));
    waits.update(&state, &input(SEEN.plus(MINUTE)));
    assert_eq!(blocked(&waits, SEEN.plus(MINUTE)), [""; 0]);
    waits.forget();
    assert_eq!(blocked(&waits, SEEN.plus(9 * MINUTE)), [""; 0]);
}

#[test]
fn a_hook_that_fails_again_after_a_retry_is_told_again() {
    let mut state = with_failed_drain();
    let mut waits = BlockedSince::default();
    let mut told = |state: &State| {
        waits.update(state, &input(SEEN));
        ids(state, &input(SEEN.plus(MINUTE)), &waits).pop().unwrap()
    };
    let first = told(&state);
    assert!(first.ends_with("/blocked/hook_failed/a/w/drain"), "{first}");
    let (member, hook) = the_drain(&state);
    let what = OperatorRequest::Retry { event: EventId::new("e"), member, hook };
    let retry = Command::RequestAction(RequestAction { what, who: "ada".into(), reason: "room was made".into() });
    assert_eq!(apply(&mut state, &Entry { at: SEEN, by: vm("a"), command: retry }), ApplyResult::Applied);
    assert!(!told(&state).contains("hook_failed"), "it waits for its run, and for nobody");
    fail_drain(&mut state);
    assert_eq!(told(&state), format!("{first}/retry-1"));
}

#[test]
fn what_was_told_of_a_wait_is_resolved_and_a_wait_that_comes_back_is_told_again() {
    let (mut state, mut waits) = (with(event()), BlockedSince::default());
    let at = |seconds: u32| SEEN.plus(Duration::from_secs(1) * seconds);
    let mut told = |state: &State, now, is_listed: bool| {
        // A closed event has no blocker.
        let mut seen = state.clone();
        if !is_listed {
            seen.open.clear();
            let mut closed = event();
            closed.entered.extend([(Stage::Closed, now)]);
            seen.history.push_back(closed.into());
        }
        waits.update(&seen, &input(now));
        let all = ids(&seen, &input(now), &waits);
        let is_new = |id: &String| id.contains("/blocked/") && !seen.is_delivered(id, "chat");
        all.into_iter().filter(is_new).collect::<Vec<_>>()
    };
    let blocked = format!("e@{}/blocked/deciding", SEEN.0);
    let resolved = format!("{blocked}/resolved");
    assert_eq!(told(&state, at(0), true), [""; 0]);
    // Without a notification there is no resolution.
    assert_eq!(told(&state, at(30), false), [""; 0]);
    assert_eq!(told(&state, at(50), false), [""; 0]);
    assert_eq!(told(&state, at(60), true), [""; 0]);
    assert_eq!(told(&state, at(120), true), core::slice::from_ref(&blocked));
    note(&mut state, at(120), &[(&blocked, "chat")]);
    assert_eq!(told(&state, at(130), false), [""; 0]);
    // After a short interruption the wait is the same.
    assert_eq!(told(&state, at(135), true), [""; 0]);
    assert_eq!(told(&state, at(140), false), [""; 0]);
    assert_eq!(told(&state, at(150), false), core::slice::from_ref(&resolved));
    note(&mut state, at(150), &[(&resolved, "chat")]);
    assert_eq!(told(&state, at(160), true), [""; 0]);
    assert_eq!(told(&state, at(220), true), [format!("{blocked}/2")]);
}

#[test]
fn only_what_a_person_has_to_act_on_is_a_wait() {
    let state = with_failed_drain();
    let event = &state.open[&EventId::new("e")];
    let (member, hook) = the_drain(&state);
    let code = |blocker: Blocker| code_for_a_person(&state, event, &blocker);
    let budget = |by: SlotCause| Blocker::Budget { group: None, by: alloc::vec![by], notice_ends: SEEN };
    assert_eq!(code(budget(SlotCause::Event(EventId::new("f")))), None);
    assert_eq!(code(budget(SlotCause::NotReady(member.clone()))), Some("budget"));
    assert_eq!(code(Blocker::HookWaiting { member: member.clone(), hook, from: SEEN }), None);
    let (reason, retry_at) = (String::new(), SEEN);
    assert_eq!(code(Blocker::HookBlocked { member, hook, reason, retry_at }), Some("hook_blocked"));
    // With this hold the primary would go down at the end of the notice.
    let hold = |no_hooks| {
        let (by, until) = ("ada".into(), event.notice_ends());
        Blocker::Hold(Suspension { number: 1, by, until, reason: String::new(), no_hooks })
    };
    assert_eq!((code(hold(false)), code(hold(true))), (None, Some("hold")));
}
