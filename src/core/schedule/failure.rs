//! Hooks that hold an event because of exhausted attempts.

use crate::model::attempt::Outcome;
use crate::model::blocker::Blocker;
use crate::model::event::Event;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::OnFailure;
use crate::schedule::last_call::last_call_lead;
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

/// The hook for which an event gave its slots back and waits for its last call, in which the hook runs again.
pub(crate) fn failure_before_last_call(
    state: &State,
    event: &Event,
    steps: &[Step<'_>],
    now: Timestamp,
) -> Option<Blocker> {
    let is_open = |step: &&Step<'_>| !matches!(step_state::step_state(event, step, now), StepState::Satisfied);
    let holds = steps.iter().filter(|step| step.on_failure == OnFailure::Hold).filter(is_open);
    let failed = |step: &Step<'_>| {
        let last = event.forward_attempts_of(&step.member, step.id).next_back()?;
        let (outcome, _) = last.outcome.as_ref()?;
        match outcome {
            Outcome::Done | Outcome::NotApplicable => None,
            Outcome::Blocked(reason) => {
                let (member, hook, reason) = (step.member.clone(), step.id, reason.clone());
                let retry_at = event.notice_ends().minus(last_call_lead(state, event));
                Some(Blocker::HookBlocked { member, hook, reason, retry_at })
            }
            outcome => Some(hook_failed(event, step, outcome.reason().unwrap_or(outcome.as_str()))),
        }
    };
    holds.into_iter().find_map(failed)
}

pub(crate) fn hook_failed(event: &Event, step: &Step<'_>, reason: &str) -> Blocker {
    let (member, hook) = (step.member.clone(), step.id);
    Blocker::HookFailed { member, hook, reason: reason.into(), notice_ends: event.notice_ends() }
}
