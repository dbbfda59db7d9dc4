//! Reports of a replica about the attempts on this replica: progress, outcome, and the need for more time.

use crate::apply::access::{Applied, open};
use crate::apply::budgets;
use crate::model::attempt::{Attempt, BlockedCount, Outcome, Progress};
use crate::model::command::Rejection;
use crate::model::event::Event;
use crate::model::id::{AttemptId, EventId, VmName};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Phase;
use alloc::vec::Vec;
use core::time::Duration;

/// Limit of a request for more time in a restore, because a restore has no end of its own.
const RESTORE_EXTENDS_AT_MOST: Duration = Duration::from_mins(10);

/// The open attempt of an event, if the attempt runs on the reporting replica.
fn attempt_of<'a>(event: &'a mut Event, id: AttemptId, by: &VmName) -> Result<&'a mut Attempt, Rejection> {
    let attempt = event.attempts.iter_mut().find(|attempt| attempt.id == id).ok_or(Rejection::UnknownAttempt)?;
    if attempt.on == *by { Ok(attempt) } else { Err(Rejection::NotYours) }
}

pub(crate) fn report_progress(
    state: &mut State,
    by: &VmName,
    id: &EventId,
    attempt: AttemptId,
    progress: &Progress,
) -> Applied {
    let event = open(state, id)?;
    let attempt = attempt_of(event, attempt, by)?;
    if attempt.outcome.is_some() {
        return Err(Rejection::Late);
    }
    if attempt.progress.as_ref() == Some(progress) {
        return Err(Rejection::Repeated);
    }
    attempt.progress = Some(progress.clone());
    Ok(())
}

/// Extends the attempt's deadline as far as the event's time allows.
pub(crate) fn extend_attempt(
    state: &mut State,
    by: &VmName,
    id: &EventId,
    attempt: AttemptId,
    deadline: Timestamp,
) -> Applied {
    let now = state.now;
    let event = open(state, id)?;
    let known = attempt_of(event, attempt, by)?;
    let phase = known.hook.phase;
    if known.outcome.is_some() || now >= known.deadline {
        return Err(Rejection::Late);
    }
    let ends = event.latest_end_of_phase(phase).unwrap_or(now.plus(RESTORE_EXTENDS_AT_MOST));
    let known = attempt_of(event, attempt, by)?;
    if deadline.min(ends) <= known.deadline {
        return Err(Rejection::NotDue);
    }
    known.deadline = deadline.min(ends);
    Ok(())
}

pub(crate) fn finish_attempt(
    state: &mut State,
    by: &VmName,
    id: &EventId,
    attempt: AttemptId,
    outcome: &Outcome,
) -> Applied {
    let now = state.now;
    let event = open(state, id)?;
    let attempt = attempt_of(event, attempt, by)?;
    if attempt.outcome.is_some() {
        if attempt.late.is_none() && attempt.outcome.as_ref().is_some_and(|(settled, _)| settled != outcome) {
            attempt.late = Some((outcome.clone(), now));
            event.revision += 1;
            return Ok(());
        }
        return Err(Rejection::Late);
    }
    attempt.outcome = Some((outcome.clone(), now));
    let is_as_before = attempt.is_blocked() && attempt.blocked.is_some();
    if attempt.is_blocked() {
        let first = BlockedCount { times: 0, since: attempt.begun_at };
        let BlockedCount { times, since } = attempt.blocked.unwrap_or(first);
        attempt.blocked = Some(BlockedCount { times: times.saturating_add(1), since });
    }
    let (member, stint, phase) = (attempt.member.clone(), attempt.stint, attempt.hook.phase);
    let ended = attempt.clone();
    event.revision += u64::from(!is_as_before);
    restart_waiting_budgets(state, id, &ended);
    // A restore to be cancelled that succeeded regardless: the member is no longer sick.
    if let Some(slot) = state.slots.get_mut(&member)
        && phase == Phase::Restore
        && slot.stint != stint
        && outcome.is_favourable()
    {
        (slot.was_fit, slot.restore_failed) = (true, false);
    }
    Ok(())
}

pub(crate) fn expire_attempt(state: &mut State, id: &EventId, attempt: AttemptId) -> Applied {
    let now = state.now;
    let event = open(state, id)?;
    let deadline = event.deadline_of(event.attempt(attempt).ok_or(Rejection::UnknownAttempt)?);
    let attempt = event.attempts.iter_mut().find(|found| found.id == attempt).ok_or(Rejection::UnknownAttempt)?;
    if attempt.outcome.is_some() {
        return Err(Rejection::Repeated);
    }
    if now < deadline {
        return Err(Rejection::NotNow);
    }
    let reason = alloc::format!("{} did not say by the deadline how it ended", attempt.on);
    attempt.outcome = Some((Outcome::Unknown(reason), now));
    let ended = attempt.clone();
    event.revision += 1;
    restart_waiting_budgets(state, id, &ended);
    Ok(())
}

/// Lets the budgets of other events of the member count from now on, if their hooks waited for this long hook, and none of
/// them began meanwhile.
fn restart_waiting_budgets(state: &mut State, id: &EventId, ended: &Attempt) {
    let lasted = state.now.since(ended.begun_at);
    let waited = |event: &&Event| {
        let budget = event.treatment.as_ref().and_then(|treatment| treatment.budget);
        let Some((budget, ends)) = budget.zip(event.budget_ends()) else { return false };
        let begun = |own: &Attempt| own.member == ended.member && own.begun_at >= ends.minus(budget);
        let is_other = event.announcement.id != *id && event.affects(&ended.member.vm);
        is_other && ended.hook.phase < Phase::Restore && lasted >= budget / 4 && !event.attempts.iter().any(begun)
    };
    let waiting: Vec<EventId> = state.open_events().filter(waited).map(|event| event.announcement.id.clone()).collect();
    for event in waiting {
        budgets::restart_after_a_wait(state, &event, ended.begun_at);
    }
}
