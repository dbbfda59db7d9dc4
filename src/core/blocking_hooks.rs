//! Hooks that block an event by themselves. Several hooks may block one event, and an operator has to know each.

use crate::model::blocker::Blocker;
use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Member, OnFailure};
use crate::schedule::clearance::blocker_of_step;
use crate::schedule::failure::hook_failed;
use crate::schedule::required;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;
use alloc::vec::Vec;

/// For each workload, the first hook that failed permanently and holds the event, is blocked, or waits for a
/// disconnected workload.
pub fn blocking_hooks(state: &State, event: &Event, now: Timestamp) -> Vec<Blocker> {
    let mut vetoes: Vec<(Member, Blocker)> = Vec::new();
    for step in required::required_steps(state, event) {
        if let Some(veto) = veto(state, event, &step, now)
            && !vetoes.iter().any(|(member, _)| *member == step.member)
        {
            vetoes.push((step.member, veto));
        }
    }
    vetoes.into_iter().map(|(_, veto)| veto).collect()
}

fn veto(state: &State, event: &Event, step: &Step<'_>, now: Timestamp) -> Option<Blocker> {
    match step_state::state_without_undo(event, step, now) {
        StepState::Failed(reason) if step.on_failure == OnFailure::Hold => Some(hook_failed(event, step, &reason)),
        _ => blocker_of_step(state, event, step, now)
            .filter(|it| matches!(it, Blocker::HookBlocked { .. } | Blocker::WorkloadAway { .. })),
    }
}
