//! The progress of each required hook, derived from its attempts.

use crate::model::attempt::{Attempt, Outcome};
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, OnAbsent, OnFailure, Phase};
use crate::schedule::retry_delay::{BLOCKED_RETRY_AFTER, backoff, step_retry_delay};
use crate::schedule::step::Step;
use alloc::string::String;
use core::time::Duration;

/// A hook with `on_failure = "continue"` that is blocked for so long gives way.
const BLOCKED_AT_MOST: Duration = Duration::from_secs(30);

/// The progress of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepState<'a> {
    /// To be begun, with this intent, from this time on.
    Due {
        intent: Intent,
        from: Timestamp,
        blocked: Option<String>,
    },
    Running(&'a Attempt),
    /// Done, not applicable, or waived.
    Satisfied,
    Failed(String),
    /// Not settled at the end of the preparation time.
    OutOfTime,
}

/// The progress of a step at a time.
pub fn step_state<'a>(event: &Event, step: &Step<'a>, now: Timestamp) -> StepState<'a> {
    if step.is_undo {
        return undo_state(step, now);
    }
    match state_without_undo(event, step, now) {
        StepState::Failed(why) => of_failover(event, step, now).unwrap_or(StepState::Failed(why)),
        other => other,
    }
}

/// The progress of a step, regardless of an undo under way.
pub fn state_without_undo<'a>(event: &Event, step: &Step<'a>, now: Timestamp) -> StepState<'a> {
    if is_set_aside(event, step) {
        return StepState::Satisfied;
    }
    let ends = event.latest_end_of_phase(step.id.phase);
    let retried = event.retried_after(&step.member, step.id);
    let counted = || step.forward().filter(move |attempt| Some(attempt.id) > retried);
    let last = counted().next_back();
    if step.when_disconnected == Some(OnAbsent::Skip) && may_skip(step, last) {
        return StepState::Satisfied;
    }
    let is_running = last.is_some_and(|last| last.outcome.is_none());
    if let Some(failed) = failed_before_last_call(event, step, now).filter(|_| !is_running) {
        return failed;
    }
    let due = |intent, from, blocked| match ends.filter(|ends| now >= *ends) {
        // A retry or an answer for which there was no time has changed nothing.
        Some(ends) => failed_in_time(step, ends).unwrap_or(StepState::OutOfTime),
        None => StepState::Due { intent, from, blocked },
    };
    let Some(last) = last else {
        return due(Intent::Run, if step.id.phase < Phase::Restore { event.first_seen() } else { now }, None);
    };
    let Some((outcome, at)) = &last.outcome else {
        return StepState::Running(last);
    };
    let runs = counted().filter(|attempt| counts_as_try(attempt)).count();
    let failed = || {
        if let Some(ends) = ends.filter(|ends| is_cut_short(last, outcome, *at, *ends)) {
            return failed_in_time(step, ends).unwrap_or(StepState::OutOfTime);
        }
        StepState::Failed(outcome.reason().unwrap_or_else(|| outcome.as_str()).into())
    };
    let again = || {
        if may_repeat(step, runs) { due(Intent::Run, at.plus(step_retry_delay(step, runs)), None) } else { failed() }
    };
    // A confirmation without a result leaves the doubt about the hook as before.
    if last.intent == Intent::Confirm && !matches!(outcome, Outcome::Done | Outcome::NotApplicable | Outcome::NotDone) {
        // A restore may run again at any time, and no end of a phase ends the questions about it.
        if step.id.phase >= Phase::Restore {
            return again();
        }
        // A hook that hung and cannot be confirmed is no longer waited for.
        let hangs = matches!(outcome, Outcome::TimedOut(_) | Outcome::Failed(_) | Outcome::Cancelled);
        if hangs && has_timed_out(step) {
            return if step.id.phase == Phase::Failover { failed() } else { again() };
        }
        let why = outcome.reason().map(String::from);
        return due(Intent::Confirm, at.plus(backoff(asked(step))), why);
    }
    match outcome {
        Outcome::Done | Outcome::NotApplicable => StepState::Satisfied,
        Outcome::Blocked(_) if gives_way(step, now) && has_left(event, step) => failed(),
        Outcome::Blocked(reason) => due(Intent::Run, at.plus(BLOCKED_RETRY_AFTER), Some(reason.clone())),
        // A stopped hook may be done, or half done.
        Outcome::Unknown(_) | Outcome::TimedOut(_) if step.hook.can_confirm => due(Intent::Confirm, *at, None),
        // A failover without a confirmation is never run again automatically.
        Outcome::Unknown(_) | Outcome::TimedOut(_) if step.id.phase == Phase::Failover => failed(),
        Outcome::NotDone | Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Unknown(_) => again(),
        // A hook stopped because the member leaves once more is due again at the member's return.
        Outcome::Cancelled if step.id.phase >= Phase::Restore => again(),
        Outcome::Cancelled => failed(),
    }
}

/// Whether the end of its phase cut the attempt short: such an attempt has not failed. An attempt that vanished before has
/// failed.
fn is_cut_short(last: &Attempt, outcome: &Outcome, at: Timestamp, ends: Timestamp) -> bool {
    match outcome {
        Outcome::TimedOut(_) => last.deadline >= ends,
        Outcome::Unknown(_) | Outcome::Cancelled => at >= ends,
        Outcome::Done | Outcome::NotApplicable | Outcome::NotDone | Outcome::Failed(_) | Outcome::Blocked(_) => false,
    }
}

/// The failure of a run before the end of its phase, for a hook that holds its event and was not done since.
fn failed_in_time<'a>(step: &Step<'a>, ends: Timestamp) -> Option<StepState<'a>> {
    let ended = step.forward().rev().filter_map(|run| run.outcome.as_ref().map(|(outcome, at)| (run, outcome, *at)));
    let mut since_done = ended.take_while(|(_, outcome, _)| !outcome.is_favourable());
    let failed = since_done.find(|(run, outcome, at)| {
        let has_begun = run.intent == Intent::Run && !matches!(outcome, Outcome::Blocked(_));
        has_begun && !is_cut_short(run, outcome, *at, ends)
    });
    let (_, outcome, _) = failed.filter(|_| step.on_failure == OnFailure::Hold)?;
    Some(StepState::Failed(outcome.reason().unwrap_or_else(|| outcome.as_str()).into()))
}

/// Whether the hook failed before this end of its phase, and the event waits for the hook.
pub(crate) fn has_failed_by(event: &Event, step: &Step<'_>, ends: Timestamp) -> bool {
    !is_set_aside(event, step) && failed_in_time(step, ends).is_some()
}

/// Whether the hook is waived, or done for another event of the stint.
fn is_set_aside(event: &Event, step: &Step<'_>) -> bool {
    step.is_done_elsewhere || event.waiver(&step.member, step.id).is_some()
}

/// The failure of a hook whose budget is over. A last call gives time to hooks that have not failed: with a second run of
/// this hook, the failure would no longer hold the event, and the budget would approve the event.
fn failed_before_last_call<'a>(event: &Event, step: &Step<'a>, now: Timestamp) -> Option<StepState<'a>> {
    event.latest_end_of_phase(step.id.phase).and(event.last_call_since)?;
    let ends = event.budget_for_hooks_ends().filter(|ends| now >= *ends)?;
    failed_in_time(step, ends)
}

/// Whether the hook of a disconnected workload is passed over. A failover that began may have left no primary. A prepared
/// workload is restored when the workload connects again.
fn may_skip(step: &Step<'_>, last: Option<&Attempt>) -> bool {
    let has_ended = last.is_none_or(|last| last.outcome.is_some());
    let is_begun_failover = step.id.phase == Phase::Failover && step.forward().any(may_have_begun);
    step.id.phase < Phase::Restore && has_ended && !is_begun_failover
}

/// Whether a hook that may fail has been blocked so long that the hooks after it go first: they may matter more.
fn gives_way(step: &Step<'_>, now: Timestamp) -> bool {
    gives_way_at(step).is_some_and(|at| now >= at)
}

/// From when on a blocked hook gives way to the hooks after it; `None` for a hook that is not blocked, or holds the event.
pub fn gives_way_at(step: &Step<'_>) -> Option<Timestamp> {
    let since = blocked_since(step).filter(|_| step.on_failure == OnFailure::Continue)?;
    let may_fail = step.id.phase < Phase::Restore && step.id.phase != Phase::Failover;
    may_fail.then(|| since.plus(step.hook.timeout.min(BLOCKED_AT_MOST)))
}

/// Whether another hook has begun to take the member away.
fn has_left(event: &Event, step: &Step<'_>) -> bool {
    let mut others = event.attempts.iter().filter(|other| other.member == step.member && other.hook != step.id);
    others.any(|other| other.hook.phase.is_disruptive() && other.stint == step.stint && other.intent == Intent::Run)
}

/// Attempts that count against a hook's limit.
fn counts_as_try(attempt: &Attempt) -> bool {
    attempt.intent == Intent::Run && !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))
}

/// Whether the last run of the hook timed out.
fn has_timed_out(step: &Step<'_>) -> bool {
    let last_run = step.forward().rfind(|attempt| attempt.intent == Intent::Run);
    last_run.is_some_and(|run| matches!(run.outcome, Some((Outcome::TimedOut(_), _))))
}

/// Number of the latest consecutive confirmations.
fn asked(step: &Step<'_>) -> usize {
    let asked = step.forward().rev().take_while(|attempt| attempt.intent == Intent::Confirm);
    let times = asked.map(|attempt| 1 + attempt.blocked.map_or(0, |blocked| blocked.times.saturating_sub(1)));
    usize::try_from(times.fold(0_u32, u32::saturating_add)).unwrap_or(usize::MAX)
}

/// A restore is repeated for as long as necessary; every other hook has a limited number of attempts.
fn may_repeat(step: &Step<'_>, runs: usize) -> bool {
    step.id.phase >= Phase::Restore || runs < usize::try_from(step.hook.max_attempts).unwrap_or(usize::MAX)
}

/// Time since which the step has been blocked, without another outcome in between.
pub fn blocked_since(step: &Step<'_>) -> Option<Timestamp> {
    let known = step.forward().rev().filter(|attempt| attempt.outcome.is_some() || attempt.blocked.is_some());
    known.map_while(Attempt::blocked_since).min()
}

/// Whether the last outcome is a `done` too old to rely on.
pub fn is_stale(step: &Step<'_>, now: Timestamp) -> bool {
    let (Some(fresh_for), true) = (step.hook.fresh_for, step.hook.can_confirm) else {
        return false;
    };
    let last = step.forward().next_back().and_then(|last| last.outcome.as_ref());
    matches!(last, Some((Outcome::Done, at)) if now.since(*at) > fresh_for)
}

/// Whether the step no longer blocks later steps.
pub fn is_satisfied(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    match step_state(event, step, now) {
        StepState::Satisfied => true,
        // A failed undo does not block the remaining restore.
        StepState::Failed(_) => step.on_failure == OnFailure::Continue || step.is_undo,
        StepState::Due { blocked: Some(_), .. } => gives_way(step, now),
        StepState::Due { .. } | StepState::Running(_) | StepState::OutOfTime => false,
    }
}

/// Whether a failover began, and was neither done nor undone since: the group may have no primary until the failover runs
/// again.
pub(crate) fn is_half_done(step: &Step<'_>) -> bool {
    let is_end = |it: &&&Attempt| it.outcome.as_ref().is_some_and(|(outcome, _)| outcome.is_favourable());
    let end = step.attempts.iter().rfind(is_end).map(|attempt| attempt.id);
    step.id.phase == Phase::Failover && step.forward().any(|run| Some(run.id) > end && may_have_begun(run))
}

/// Whether the hook was begun, and is not known to be done or not applicable.
pub(crate) fn is_owed(step: &Step<'_>) -> bool {
    let last = step.forward().next_back().and_then(|last| last.outcome.as_ref());
    let is_settled = matches!(last, Some((Outcome::Done | Outcome::NotApplicable, _)));
    step.hook.can_undo && !is_settled && step.forward().any(may_have_begun)
}

/// Whether the attempt may have had an effect: a blocked hook has begun nothing, and a running attempt is stopped
/// first.
fn may_have_begun(attempt: &Attempt) -> bool {
    let idle =
        matches!(attempt.outcome, None | Some((Outcome::Done | Outcome::NotApplicable | Outcome::Blocked(_), _)));
    attempt.intent == Intent::Run && !idle
}

/// The state of the failover's step during its undo: a failover that failed permanently may have left the group without
/// a primary, so its undo starts at once. `None` if there is nothing to undo, or no time left for the undo.
pub(crate) fn of_failover<'a>(event: &Event, step: &Step<'a>, now: Timestamp) -> Option<StepState<'a>> {
    // A failure that holds the event leaves time until the notice ends.
    let ends = match step.on_failure {
        OnFailure::Hold => event.notice_ends().minus(event.margin()),
        OnFailure::Continue => event.preparation_ends(),
    };
    let is_pending = event.stage() < Stage::Claimed && now < ends;
    let applies = step.id.phase == Phase::Failover && is_pending && is_owed(step);
    let taken_back = applies.then(|| undo_state(step, now))?;
    matches!(taken_back, StepState::Due { .. } | StepState::Running(_)).then_some(taken_back)
}

/// The progress of an undo.
pub(crate) fn undo_state<'a>(step: &Step<'a>, now: Timestamp) -> StepState<'a> {
    // A repeated run needs a repeated undo.
    let last_run = step.forward().map(|attempt| attempt.id).max();
    let is_undo = move |attempt: &&Attempt| attempt.intent == Intent::Undo && Some(attempt.id) > last_run;
    let undos = || step.attempts.iter().copied().filter(is_undo);
    let undo_due = |from, blocked| StepState::Due { intent: Intent::Undo, from, blocked };
    let Some(last) = undos().next_back() else {
        return undo_due(
            step.forward().filter_map(|it| it.outcome.as_ref()).map(|(_, at)| *at).max().unwrap_or(now),
            None,
        );
    };
    let Some((outcome, at)) = &last.outcome else {
        return StepState::Running(last);
    };
    let spent = undos().filter(|attempt| !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))).count();
    match outcome {
        Outcome::Done | Outcome::NotApplicable => StepState::Satisfied,
        Outcome::Blocked(why) => undo_due(at.plus(BLOCKED_RETRY_AFTER), Some(why.clone())),
        _ if spent < usize::try_from(step.hook.max_attempts).unwrap_or(usize::MAX) => {
            undo_due(at.plus(backoff(spent)), None)
        }
        _ => StepState::Failed(outcome.reason().unwrap_or("the undo of the hook did not succeed").into()),
    }
}
