//! Budgets that count anew after a time in which no hook could begin (`SPEC.md` 5).

use crate::model::id::EventId;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::schedule::failure;

/// Lets the budget of an event count from now on. Not if a failed hook held the event when the wait began, because such a
/// hook does not run again by itself. And not if the new end would make a failure of a run that the old end cut short.
pub(crate) fn restart_after_a_wait(state: &mut State, id: &EventId, began: Timestamp) {
    let now = state.now;
    let Some(event) = state.open_event(id).filter(|event| event.stage() <= Stage::Preparing) else { return };
    let mut later = event.clone();
    later.restart_budget(now);
    let is_held =
        failure::holding_failure(state, event, began).or_else(|| failure::holding_failure(state, &later, now));
    if is_held.is_none()
        && let Some(event) = state.open.get_mut(id)
    {
        *event = later.into();
    }
}
