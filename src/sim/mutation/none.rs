//! The functions that decide, as they are.

use allclear_core::apply::apply;
use allclear_core::isolation::approval::takeover;
use allclear_core::model::command::{Command, Entry, Verdict};
use allclear_core::model::id::EventId;
use allclear_core::model::state::State;
use allclear_core::plan::plan;
use allclear_core::situation::Situation;

use super::Mistake;

#[expect(clippy::unused_self, reason = "with the feature `mutations`, it matters which mistake it is")]
impl Mistake {
    pub(crate) fn apply(self, state: &mut State, entry: &Entry) -> Verdict {
        apply(state, entry)
    }

    pub(crate) fn plan(self, state: &State, situation: &Situation) -> Vec<Command> {
        plan(state, situation)
    }

    /// The event that the replica approves alone.
    pub(crate) fn takeover(self, state: &State, situation: &Situation) -> Option<EventId> {
        takeover(state, situation).map(|announced| announced.id.clone())
    }
}
