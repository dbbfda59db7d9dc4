//! Tests of the sentences about holds and pauses.

use super::*;

#[test]
fn the_end_of_a_hold_is_not_told_as_the_time_of_the_start() {
    let event = event(Source::Platform, Vec::new());
    let shorter = told(&Blocker::Hold(halt(10)), &event, 1);
    assert_eq!(
        shorter.next,
        "the hold ends automatically, and the event goes on then: hooks that are left run before the approval"
    );
    let longer = told(&Blocker::Paused(halt(60)), &event, 1);
    assert!(longer.next.ends_with("Azure starts the event when the notice ends"), "{}", longer.next);
    for (told, minutes) in [(shorter, 10), (longer, 15)] {
        assert_eq!(told.until, Some(rfc3339(after(minutes))));
    }
}

#[test]
fn only_in_a_pair_an_unaware_replica_may_approve_a_users_event_alone() {
    let message = |source, voters: usize| {
        let mut state = State::default();
        let mut input = input(1);
        input.members.truncate(voters);
        for name in &input.members {
            state.replicas.insert(name.clone(), Replica::default().into());
        }
        let held = Blocker::Hold(Suspension { number: 1, ..halt(10) });
        shown(&held, &event(source, Vec::new()), &state, &input).message
    };
    let alone = "db-1: an isolated replica among these may approve the event alone";
    assert!(message(Source::User, 2).ends_with(alone), "{}", message(Source::User, 2));
    for (source, voters) in [(Source::User, 3), (Source::Platform, 2)] {
        let told = message(source, voters);
        assert!(told.contains("; not acknowledged yet by db-0") && !told.contains("isolated"), "{told}");
    }
}

#[test]
fn a_hold_that_ends_before_the_preparation_starts_promises_no_hook_at_its_end() {
    let mut event = event(Source::Platform, Vec::new());
    event.announcement.not_before = NotBefore::At(after(600));
    let until = after(120);
    let held = told(&Blocker::Hold(Suspension { until, ..halt(0) }), &event, 1);
    let starts = rfc3339(event.preparation_starts());
    assert_eq!(held.next, format!("the hold ends automatically at {}; preparation starts", rfc3339(until)));
    assert_eq!(held.until, Some(starts));
}

/// A hold without hooks that outlasts the notice leaves the primary where it is.
#[test]
fn a_hold_without_hooks_says_so() {
    let mut event = event(Source::Platform, Vec::new());
    event.announcement.not_before = NotBefore::At(after(15));
    let mut with = |no_hooks, until| {
        let what = OperatorAction::Hold { until, no_hooks };
        let (who, reason) = ("ada".into(), "repair".into());
        event.operator_records = vec![OperatorRecord { number: 1, at: SEEN, who, reason, what }];
        told(&Blocker::Hold(event.hold(after(1)).unwrap()), &event, 1)
    };
    let held = with(true, after(60));
    assert!(held.message.starts_with("the event is held, and no further hook of it begins, until"), "{held:?}");
    let next = "the hold does not prevent the start: no further hook begins before, unless an operator releases the event; \
                Azure starts the event";
    assert!(held.next.starts_with(next), "{held:?}");
    assert!(with(false, after(60)).message.starts_with("the event is held, until"));
}

#[test]
fn of_a_hold_and_a_pause_the_longer_ends_the_wait() {
    let event = event(Source::Platform, Vec::new());
    let mut state = State::default();
    state.operator_records.push(OperatorRecord {
        number: 1,
        at: SEEN,
        who: "ada".into(),
        reason: "network".into(),
        what: OperatorAction::Pause { until: after(9) },
    });
    let held = |minutes| shown(&Blocker::Hold(halt(minutes)), &event, &state, &input(1));
    let shorter = held(5);
    let waits =
        format!("the hold ends automatically at {}, and the event still waits for the pause", rfc3339(after(5)));
    assert_eq!((shorter.next, shorter.until), (waits, Some(rfc3339(after(9)))));
    assert!(held(10).next.starts_with("the hold ends automatically, and the event goes on then"));
    // The pause ends after the notice.
    state.operator_records[0].what = OperatorAction::Pause { until: after(20) };
    let next = shown(&Blocker::Hold(halt(5)), &event, &state, &input(1)).next;
    assert!(next.starts_with("the hold does not prevent the start"), "{next}");
}
