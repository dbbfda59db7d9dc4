//! The records of deliveries: for how long, and how many.

use super::*;
use crate::apply::apply;
use crate::model::command::{ApplyResult, Command, Entry, RecordDeliveries};
use crate::model::id::VmName;
use crate::model::notification::TOLD_WITHIN;
use crate::model::time::Timestamp;
use alloc::string::ToString as _;

const SEEN: Timestamp = Timestamp(1_000_000_000);

/// Records that these notifications were delivered to these receivers.
pub(crate) fn note(state: &mut State, at: Timestamp, told: &[(&str, &str)]) -> ApplyResult {
    let told =
        told.iter().map(|(notice, receiver)| Delivery { notice: (*notice).into(), receiver: (*receiver).into() });
    apply(
        state,
        &Entry {
            at,
            by: VmName::new("a"),
            command: Command::RecordDeliveries(RecordDeliveries { deliveries: told.collect() }),
        },
    )
}

#[test]
fn what_was_told_is_remembered_for_each_receiver_as_long_as_it_could_be_told_again() {
    let mut state = State::default();
    let later = SEEN.plus(TOLD_WITHIN);
    assert_eq!(note(&mut state, SEEN, &[("one", "chat"), ("two", "grid")]), ApplyResult::Applied);
    assert!(
        state.is_delivered("one", "chat") && state.is_delivered("two", "grid") && !state.is_delivered("one", "grid")
    );
    assert_eq!(note(&mut state, later, &[("one", "chat")]), ApplyResult::Rejected(Rejection::Repeated));
    assert_eq!(note(&mut state, later, &[("one", "grid"), ("three", "chat")]), ApplyResult::Applied);
    assert_eq!(state.deliveries.len(), 3);
    assert_eq!(note(&mut state, SEEN.plus(REMEMBERED_FOR), &[("four", "grid")]), ApplyResult::Applied);
    assert_eq!(state.deliveries.keys().map(String::as_str).collect::<Vec<_>>(), ["four", "three"]);
}

#[test]
fn what_may_end_is_remembered_until_its_end_was_told() {
    let mut state = State::default();
    let lasting = ["a/w/restore_failed/1", "b/channel_stalled/490", "e@7/blocked/budget"];
    let ended = format!("{}/resolved", lasting[2]);
    note(&mut state, SEEN, &lasting.map(|id| (id, "chat")));
    note(&mut state, SEEN, &[("e@7/started", "chat"), (&ended, "chat")]);
    let kept = |state: &State| state.deliveries.keys().cloned().collect::<Vec<_>>();
    note(&mut state, SEEN.plus(REMEMBERED_FOR), &[("new", "chat")]);
    assert_eq!(kept(&state), [lasting[0], lasting[1], "new"]);
    note(&mut state, SEEN.plus(Duration::from_hours(30 * 24)), &[("newer", "chat")]);
    assert_eq!(kept(&state), ["newer"]);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut state = State::default();
    let long = "x".repeat(NAME_LIMIT + 1);
    for (notice, receiver) in [(long.as_str(), "chat"), ("one", long.as_str())] {
        assert_eq!(note(&mut state, SEEN, &[(notice, receiver)]), ApplyResult::Rejected(Rejection::Repeated));
    }
    let many: Vec<String> = (0..=REMEMBERED).map(|number| number.to_string()).collect();
    let all: Vec<_> = many.iter().map(|notice| (notice.as_str(), "chat")).collect();
    assert_eq!(note(&mut state, SEEN, &all), ApplyResult::Applied);
    assert_eq!(state.deliveries.len(), REMEMBERED);
    let receivers: Vec<_> = many.iter().take(2 * RECEIVERS).map(|name| ("0", name.as_str())).collect();
    assert_eq!(note(&mut state, SEEN, &receivers), ApplyResult::Applied);
    assert_eq!(state.deliveries["0"].receivers.len(), RECEIVERS);
    // Old records make space.
    assert_eq!(note(&mut state, SEEN.plus(REMEMBERED_FOR), &[("new", "chat")]), ApplyResult::Applied);
    assert_eq!(state.deliveries.len(), 1);
}
