//! Hooks that hold an event because of exhausted attempts.

use crate::model::attempt::Outcome;
use crate::model::blocker::Blocker;
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Member, OnFailure};
use crate::schedule::last_call;
use crate::schedule::required;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;

/// The hook with exhausted attempts that holds the event, also during an undo of the hook. A failure before the return
/// of the slots still counts, until the hook runs again.
pub fn holding_failure(state: &State, event: &Event, now: Timestamp) -> Option<Blocker> {
    let steps = required::required_steps(state, event);
    holding_failure_among(event, &steps, now).or_else(|| failure_before_return(event, &steps, now))
}

/// Whether a hook that failed, and that an operator let run again, has not succeeded yet.
pub fn is_retry_unproven(state: &State, event: &Event, now: Timestamp) -> bool {
    let retried = |step: &Step<'_>| event.retried_after(&step.member, step.id).is_some();
    let held_by = |step: &Step<'_>| step.on_failure == OnFailure::Hold && is_open(event, step, now);
    required::required_steps(state, event).iter().any(|step| retried(step) && held_by(step))
}

/// Whether a hook that failed once holds the event when the budget ends, unless the hook succeeds before.
pub fn will_hold(state: &State, event: &Event) -> bool {
    let Some(ends) = event.budget_for_hooks_ends() else { return false };
    required::required_steps(state, event).iter().any(|step| step_state::has_failed_by(event, step, ends))
}

/// Whether this hook of this member has failed and holds the event.
pub fn is_holding_by(state: &State, event: &Event, member: &Member, hook: HookId, now: Timestamp) -> bool {
    let steps = required::required_steps(state, event);
    steps.iter().any(|step| step.member == *member && step.id == hook && is_holding(event, step, now))
}

/// Whether this hook has failed and holds the event.
pub(crate) fn is_holding(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    let step = core::slice::from_ref(step);
    holding_failure_among(event, step, now).or_else(|| failure_before_return(event, step, now)).is_some()
}

pub(crate) fn holding_failure_among(event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let held_by = |step: &Step<'_>| match step_state::state_without_undo(event, step, now) {
        StepState::Failed(reason) if step.on_failure == OnFailure::Hold => Some(hook_failed(event, step, &reason)),
        _ => None,
    };
    steps.iter().find_map(held_by)
}

/// The blocker of an event before the last call: a failed hook, otherwise a blocked hook, otherwise the first open hook.
/// `None` without an open hook.
pub(crate) fn blocker_before_last_call(
    state: &State,
    event: &Event,
    steps: &[Step<'_>],
    now: Timestamp,
) -> Option<Blocker> {
    let runs_at = || last_call::begins_at(state, event);
    let blocked = |step: &Step<'_>| match last_outcome(event, step)? {
        Outcome::Blocked(reason) => {
            let (member, hook, reason) = (step.member.clone(), step.id, reason.clone());
            Some(Blocker::HookBlocked { member, hook, reason, retry_at: runs_at() })
        }
        _ => None,
    };
    let waiting = |step: &Step<'_>| {
        let (member, hook) = (step.member.clone(), step.id);
        Blocker::HookWaiting { member, hook, from: runs_at() }
    };
    let open = || steps.iter().filter(|step| is_open(event, step, now));
    former_failure(event, steps, now).or_else(|| open().find_map(blocked)).or_else(|| open().next().map(waiting))
}

/// The hook that failed before the members returned, until the hooks run again.
pub(crate) fn failure_before_return(event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let waits = !event.gave_back.is_empty() && event.slots_since.is_none();
    if waits { former_failure(event, steps, now) } else { None }
}

/// The failed hook of an earlier stint.
fn former_failure(event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let holds = steps.iter().filter(|step| step.on_failure == OnFailure::Hold && is_open(event, step, now));
    holds.into_iter().find_map(|step| match last_outcome(event, step)? {
        Outcome::Done | Outcome::NotApplicable | Outcome::Blocked(_) | Outcome::Cancelled => None,
        outcome => Some(hook_failed(event, step, outcome.reason().unwrap_or(outcome.as_str()))),
    })
}

fn is_open(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    !matches!(step_state::step_state(event, step, now), StepState::Satisfied)
}

fn last_outcome<'a>(event: &'a Event, step: &Step<'_>) -> Option<&'a Outcome> {
    let retried = event.retried_after(&step.member, step.id);
    let last = event.forward_attempts_of(&step.member, step.id).next_back().filter(|last| Some(last.id) > retried)?;
    last.outcome.as_ref().map(|(outcome, _)| outcome)
}

pub(crate) fn hook_failed(event: &Event, step: &Step<'_>, reason: &str) -> Blocker {
    let (member, hook) = (step.member.clone(), step.id);
    Blocker::HookFailed { member, hook, reason: reason.into(), notice_ends: event.notice_ends() }
}
