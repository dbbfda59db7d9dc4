//! Applies requests of operators (`SPEC.md` 11).
//!
//! A hold or a pause stops further claims and no existing claim. Each has an end.

use crate::apply::access::{Applied, open};
use crate::apply::slots;
use crate::model::attempt::{Waiver, WaiverReason};
use crate::model::bytes::WISHES_BYTES;
use crate::model::command::Rejection;
use crate::model::document::Status;
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::EventId;
use crate::model::operator::{HOLD_AT_MOST, OPERATOR_RECORD_LIMIT, OperatorAction, OperatorRecord, OperatorRequest};
use crate::model::state::State;
use crate::model::suspension::last;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use crate::model::workload::Member;
use crate::schedule::failure;
use crate::schedule::required;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;
use alloc::vec::Vec;

/// The operator who requests an action, and the reason.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub(crate) who: &'a str,
    pub(crate) reason: &'a str,
}

pub(crate) fn request_action(state: &mut State, what: &OperatorRequest, asker: Requester<'_>) -> Applied {
    match what {
        OperatorRequest::Hold { event, until, no_hooks } => hold(state, event, *until, *no_hooks, asker),
        OperatorRequest::Release { event } => release(state, event, asker),
        OperatorRequest::Pause { until } => pause(state, *until, asker),
        OperatorRequest::Resume => resume(state, asker),
        OperatorRequest::Approve { event, revision, over_budget } => {
            approve(state, event, *revision, *over_budget, asker)
        }
        OperatorRequest::Restored { member } => {
            slots::declare_restored(state, member)?;
            record_request(state, asker, OperatorAction::Restored(member.clone()));
            Ok(())
        }
        OperatorRequest::Skip { event, member, hook } => skip(state, event, member, *hook, asker),
        OperatorRequest::Prepare { event, from } => prepare(state, event, *from, asker),
        OperatorRequest::Retry { event, member, hook } => retry(state, event, member, *hook, asker),
        OperatorRequest::ClusterChange { what } => {
            record_request(state, asker, OperatorAction::ClusterChange(what.clone()));
            Ok(())
        }
    }
}

fn hold(state: &mut State, id: &EventId, until: Timestamp, no_hooks: bool, asker: Requester<'_>) -> Applied {
    is_bounded(state, until)?;
    if undecided(state, id)?.is_drill() {
        return Err(Rejection::NotDue);
    }
    record_for_event(state, id, asker, OperatorAction::Hold { until, no_hooks })
}

fn release(state: &mut State, id: &EventId, asker: Requester<'_>) -> Applied {
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    event.hold(state.now).ok_or(Rejection::Repeated)?;
    record_for_event(state, id, asker, OperatorAction::Release)
}

fn pause(state: &mut State, until: Timestamp, asker: Requester<'_>) -> Applied {
    is_bounded(state, until)?;
    record_request(state, asker, OperatorAction::Pause { until });
    Ok(())
}

fn resume(state: &mut State, asker: Requester<'_>) -> Applied {
    state.pause(state.now).ok_or(Rejection::Repeated)?;
    record_request(state, asker, OperatorAction::Resume);
    Ok(())
}

/// Approves an event in spite of its hooks and its waiting time; in spite of its slots only with `over_budget`. A hold
/// or pause is never overridden.
fn approve(state: &mut State, id: &EventId, revision: u64, over_budget: bool, asker: Requester<'_>) -> Applied {
    let event = undecided(state, id)?;
    if event.is_approved_by_operator() && event.is_over_budget() >= over_budget {
        return Err(Rejection::Repeated);
    }
    if event.is_drill() || state.observed_status(id) != Some(&Status::Scheduled) {
        return Err(Rejection::NotNow);
    }
    if event.hold(state.now).is_some() {
        return Err(Rejection::Held);
    }
    if state.pause(state.now).is_some() {
        return Err(Rejection::Paused);
    }
    if event.revision != revision {
        return Err(Rejection::Changed);
    }
    record_for_event(state, id, asker, OperatorAction::Approve { revision, over_budget })
}

/// Skips a hook before the event. Restore hooks cannot be skipped.
fn skip(state: &mut State, id: &EventId, member: &Member, hook: HookId, asker: Requester<'_>) -> Applied {
    let now = state.now;
    let event = undecided(state, id)?;
    let steps = required::required_steps(state, event);
    let step = steps.iter().find(|step| step.member == *member && step.id == hook).ok_or(Rejection::NotDue)?;
    if step_state::step_state(event, step, now) == StepState::Satisfied {
        return Err(Rejection::Repeated);
    }
    let why = WaiverReason::Skipped { who: asker.who.into(), reason: asker.reason.into() };
    let event = open(state, id)?;
    event.waivers.push(Waiver { member: member.clone(), hook, why, at: now });
    // A reason of the return of the slots (R6), and of the wait of later hooks, is removed.
    event.times_given_back = 0;
    event.restart_budget(now);
    event.revision += 1;
    state.operator_seq += 1;
    Ok(())
}

/// Lets the preparation start at this time, ahead of its usual start.
fn prepare(state: &mut State, id: &EventId, from: Timestamp, asker: Requester<'_>) -> Applied {
    let now = state.now;
    let event = undecided(state, id)?;
    if event.is_drill() || event.treatment.as_ref().is_none_or(|treatment| treatment.action != Action::Prepare) {
        return Err(Rejection::NotDue);
    }
    if now >= event.preparation_starts() {
        return Err(Rejection::Repeated);
    }
    if from >= event.usual_preparation_start() {
        return Err(Rejection::NotNow);
    }
    let revision = event.revision;
    record_for_event(state, id, asker, OperatorAction::Prepare { from: from.max(now), revision })
}

/// Lets a hook that failed and holds the event run again, with all its attempts.
fn retry(state: &mut State, id: &EventId, member: &Member, hook: HookId, asker: Requester<'_>) -> Applied {
    let now = state.now;
    let event = undecided(state, id)?;
    let steps = required::required_steps(state, event);
    let step = steps.iter().find(|step| step.member == *member && step.id == hook).ok_or(Rejection::NotDue)?;
    if !failure::is_holding(event, step, now) {
        return Err(Rejection::Repeated);
    }
    // The hook must not run beside its undo, and needs some time.
    let all = || event.attempts_of(member, hook);
    if all().any(|attempt| attempt.outcome.is_none()) || now >= event.notice_ends().minus(event.margin()) {
        return Err(Rejection::NotNow);
    }
    let after = all().map(|attempt| attempt.id).max().ok_or(Rejection::NotDue)?;
    record_for_event(state, id, asker, OperatorAction::Retry { member: member.clone(), hook, after })?;
    // The operator removed a reason for which the event gave its slots back (R6).
    open(state, id)?.times_given_back = 0;
    Ok(())
}

/// Records a request that does not belong to a single event.
fn record_request(state: &mut State, asker: Requester<'_>, what: OperatorAction) {
    let wish = next(state, asker, what);
    push_record(&mut state.operator_records, wish);
}

fn record_for_event(state: &mut State, id: &EventId, asker: Requester<'_>, what: OperatorAction) -> Applied {
    let wish = next(state, asker, what);
    let event = open(state, id)?;
    push_record(&mut event.operator_records, wish);
    event.revision += 1;
    Ok(())
}

fn next(state: &mut State, asker: Requester<'_>, what: OperatorAction) -> OperatorRecord {
    state.operator_seq += 1;
    OperatorRecord {
        number: state.operator_seq,
        at: state.now,
        who: asker.who.into(),
        reason: asker.reason.into(),
        what,
    }
}

/// Adds a record and drops the oldest beyond the limits; records in force stay.
fn push_record(wishes: &mut Vec<OperatorRecord>, wish: OperatorRecord) {
    wishes.push(wish);
    let kinds = [
        OperatorRecord::holds_or_releases,
        OperatorRecord::holds_or_approves,
        OperatorRecord::pauses_or_resumes,
        OperatorRecord::holds_or_prepares,
    ];
    while wishes.len() > OPERATOR_RECORD_LIMIT || wishes.iter().map(OperatorRecord::bytes).sum::<usize>() > WISHES_BYTES
    {
        let in_force = kinds.map(|kind| last(wishes, kind).map(|wish| wish.number));
        let Some(place) = wishes.iter().position(|wish| !in_force.contains(&Some(wish.number))) else { return };
        wishes.remove(place);
    }
}

fn is_bounded(state: &State, until: Timestamp) -> Applied {
    if state.now < until && until <= state.now.plus(HOLD_AT_MOST) { Ok(()) } else { Err(Rejection::Unbounded) }
}

/// The event, if its start is undecided and the event has not started.
fn undecided<'a>(state: &'a State, id: &EventId) -> Result<&'a Event, Rejection> {
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if event.is_undecided() { Ok(event) } else { Err(Rejection::Late) }
}
