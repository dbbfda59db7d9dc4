//! Whether a drill has finished.

use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::schedule::next_steps;
use crate::schedule::required;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;

/// Whether all possible preparation is done, or the time for preparation is over.
pub(crate) fn is_finished(state: &State, event: &Event, now: Timestamp) -> bool {
    let due = next_steps::next_steps(state, event, now);
    let is_settled = |step: &Step<'_>| match step_state::step_state(event, step, now) {
        StepState::Satisfied | StepState::Failed(_) | StepState::OutOfTime => true,
        StepState::Running(_) => false,
        // Steps behind a failed hook are never begun.
        StepState::Due { from, .. } => {
            from <= now && !due.iter().any(|next| next.step.member == step.member && next.step.id == step.id)
        }
    };
    event.treatment.is_some() && required::required_steps(state, event).iter().all(is_settled)
}
