//! Hooks that hold an event because of exhausted attempts.

use crate::model::blocker::Blocker;
use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::OnFailure;
use crate::schedule::required;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;

/// The hook with exhausted attempts that holds the event, also during an undo of the hook.
pub fn holding_failure(state: &State, event: &Event, now: Timestamp) -> Option<Blocker> {
    holding_failure_among(event, &required::required_steps(state, event), now)
}

pub(crate) fn holding_failure_among(event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let held_by = |step: &Step<'_>| match step_state::state_without_undo(event, step, now) {
        StepState::Failed(reason) if step.on_failure == OnFailure::Hold => Some(hook_failed(event, step, &reason)),
        _ => None,
    };
    steps.iter().find_map(held_by)
}

pub(crate) fn hook_failed(event: &Event, step: &Step<'_>, reason: &str) -> Blocker {
    let (member, hook) = (step.member.clone(), step.id);
    Blocker::HookFailed { member, hook, reason: reason.into(), notice_ends: event.notice_ends() }
}
