//! Proposes the end of a finished drill. `apply::drill::stop_drill_for_event` ends a drill early.

use crate::model::command::{Command, EndDrill};
use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::schedule::drill::is_finished;

pub(crate) fn finished_drill_to_end(state: &State, event: &Event, now: Timestamp) -> Option<Command> {
    let is_over = event.is_drill() && is_finished(state, event, now);
    is_over.then(|| Command::EndDrill(EndDrill { event: event.announcement.id.clone() }))
}
