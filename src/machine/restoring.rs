//! What happens when an event is over: what a hook began and did not finish is taken back, then what was touched is
//! put back. What was finished is put back by `restore`, and a finished failover is left where it is.

use alloc::vec::Vec;

use super::attempt::{Attempt, Outcome};
use super::event::Event;
use super::left_out::{may_run, wants};
use super::lifecycle::Stage;
use super::needs;
use super::state::State;
use super::steps::{self, Progress, Step};
use super::time::Timestamp;
use super::workload::{Hook, HookId, Intent, Phase, Workload};

/// For every workload that was touched, also on a VM that the event no longer names, in the order in which they run.
pub fn steps<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    let members = state.workloads().map(|(vm, workload)| (workload.on(vm), workload));
    let touched = members.filter(|(member, _)| event.touched(member));
    touched
        .flat_map(|(member, workload)| {
            let away = needs::away(state, &member, workload);
            let step = |(id, hook)| Step { member: member.clone(), id, hook, away };
            let mut steps: Vec<Step<'a>> = begun(workload).map(step).filter(|step| is_owed(event, step)).collect();
            // The last first.
            steps.reverse();
            let hooks = [Phase::Restore, Phase::Ready].into_iter().flat_map(|phase| workload.hooks_of(phase));
            steps.extend(hooks.filter(|(_, hook)| wants(event, hook) && may_run(event, hook)).map(step));
            steps
        })
        .collect()
}

/// Nothing more can be done to put the workloads back.
pub(super) fn is_restored(state: &State, event: &Event, now: Timestamp) -> bool {
    let steps = steps(state, event);
    let given_up = |place: usize, step: &Step<'_>| {
        steps[..place].iter().any(|before| {
            before.member == step.member
                && matches!(steps::progress(event, before, now), Progress::Failed(_) | Progress::OutOfTime)
                && !steps::lets_pass(event, before, now)
        })
    };
    event.attempts.iter().all(|attempt| attempt.outcome.is_some())
        && steps.iter().enumerate().all(|(place, step)| match steps::progress(event, step, now) {
            Progress::Favourable | Progress::Failed(_) | Progress::OutOfTime => true,
            Progress::Due { .. } => given_up(place, step),
            Progress::Running(_) => false,
        })
}

/// What may have to be taken back of a workload.
fn begun(workload: &Workload) -> impl Iterator<Item = (HookId, &Hook)> {
    let phases = Phase::ALL.into_iter().filter(|phase| *phase < Phase::Restore);
    phases.flat_map(|phase| workload.hooks_of(phase))
}

/// It was begun, and nothing says that it is done or was not needed.
fn is_owed(event: &Event, step: &Step<'_>) -> bool {
    let last = event.forward_attempts_of(&step.member, step.id).next_back().and_then(|last| last.outcome.as_ref());
    let is_settled = matches!(last, Some((Outcome::Done | Outcome::NotApplicable, _)));
    step.hook.can_undo && !is_settled && event.forward_attempts_of(&step.member, step.id).any(may_have_begun)
}

/// What is blocked has begun nothing, and what still runs is stopped first.
fn may_have_begun(attempt: &Attempt) -> bool {
    let idle =
        matches!(attempt.outcome, None | Some((Outcome::Done | Outcome::NotApplicable | Outcome::Blocked(_), _)));
    attempt.intent == Intent::Run && !idle
}

/// A failover that failed for good may have left the group without a primary, so it is taken back at once: what is to
/// be seen of its step meanwhile. `None` where there is nothing to take back, or no time left for it.
pub(super) fn of_failover<'a>(event: &'a Event, step: &Step<'_>, now: Timestamp) -> Option<Progress<'a>> {
    let is_pending = event.stage() < Stage::Claimed && now < event.preparation_ends();
    let applies = step.id.phase == Phase::Failover && is_pending && is_owed(event, step);
    let taken_back = applies.then(|| taking_back(event, step, now))?;
    matches!(taken_back, Progress::Due { .. } | Progress::Running(_)).then_some(taken_back)
}

/// How far taking back is.
pub(super) fn taking_back<'a>(event: &'a Event, step: &Step<'_>, now: Timestamp) -> Progress<'a> {
    let undos = || event.attempts_of(&step.member, step.id).filter(|attempt| attempt.intent == Intent::Undo);
    let due = |from, blocked| Progress::Due { intent: Intent::Undo, from, blocked };
    let Some(last) = undos().next_back() else {
        return due(event.over_at().unwrap_or(now), None);
    };
    let Some((outcome, at)) = &last.outcome else {
        return Progress::Running(last);
    };
    let spent = undos().filter(|attempt| !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))).count();
    match outcome {
        Outcome::Done | Outcome::NotApplicable => Progress::Favourable,
        Outcome::Blocked(why) => due(at.plus(steps::BLOCKED_RETRY_AFTER), Some(why.clone())),
        _ if spent < usize::try_from(step.hook.attempts).unwrap_or(usize::MAX) => {
            due(at.plus(steps::backoff(spent)), None)
        }
        _ => Progress::Failed(outcome.reason().unwrap_or("it was not taken back").into()),
    }
}
