//! The deciding functions, unchanged.

use allclear_core::apply::apply;
use allclear_core::isolation::approval::event_to_approve;
use allclear_core::model::command::{ApplyResult, Command, Entry};
use allclear_core::model::id::EventId;
use allclear_core::model::state::State;
use allclear_core::plan::plan;
use allclear_core::planning_input::PlanningInput;

use super::Mutation;

#[expect(clippy::unused_self, reason = "with the feature `mutations`, it matters which mutation it is")]
impl Mutation {
    pub(crate) fn apply(self, state: &mut State, entry: &Entry) -> ApplyResult {
        apply(state, entry)
    }

    pub(crate) fn plan(self, state: &State, input: &PlanningInput) -> Vec<Command> {
        plan(state, input)
    }

    /// The event to approve on an isolated replica.
    pub(crate) fn takeover(self, state: &State, input: &PlanningInput) -> Option<EventId> {
        event_to_approve(state, input).map(|announced| announced.id.clone())
    }
}
