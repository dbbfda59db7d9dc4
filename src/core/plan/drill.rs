//! When a drill ends.

use crate::model::command::Command;
use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::schedule::needs;
use crate::schedule::next;
use crate::schedule::progress;
use crate::schedule::progress::Progress;
use crate::schedule::step::Step;

/// Everything that could be prepared is, or the time for it is up.
pub(crate) fn is_finished(state: &State, event: &Event, now: Timestamp) -> bool {
    let due = next::next(state, event, now);
    let is_settled = |step: &Step<'_>| match progress::progress(event, step, now) {
        Progress::Favourable | Progress::Failed(_) | Progress::OutOfTime => true,
        Progress::Running(_) => false,
        // What stands behind a hook that failed is never begun.
        Progress::Due { from, .. } => {
            from <= now && !due.iter().any(|next| next.step.member == step.member && next.step.id == step.id)
        }
    };
    event.treatment.is_some() && needs::preparing(state, event).iter().all(is_settled)
}

pub(crate) fn to_end(state: &State, event: &Event, now: Timestamp) -> Option<Command> {
    let is_over = event.is_drill() && is_finished(state, event, now);
    is_over.then(|| Command::EndDrill { event: event.announcement.id.clone() })
}
