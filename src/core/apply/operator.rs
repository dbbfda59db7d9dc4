//! What operators ask for (`behaviour.md` 11): the part of `apply` that takes a wish over, and what of it is in force.
//!
//! A hold or a pause stops claims and nothing else; a claim that was made is never taken back. Both end by themselves.

use crate::apply::access::{Applied, open};
use crate::apply::slots;
use crate::model::attempt::{Waiver, WaiverReason};
use crate::model::bytes::WISHES_BYTES;
use crate::model::command::Ignored;
use crate::model::document::Status;
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::EventId;
use crate::model::lifecycle::Stage;
use crate::model::operator::{Asked, HOLD_AT_MOST, WISH_LIMIT, What, Wish};
use crate::model::state::State;
use crate::model::suspension::last;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use crate::schedule::needs;
use crate::schedule::progress;
use crate::schedule::progress::Progress;
use alloc::vec::Vec;

/// Who asks, and why.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) who: &'a str,
    pub(crate) reason: &'a str,
}

pub(crate) fn ask(state: &mut State, what: &Asked, asker: Asker<'_>) -> Applied {
    match what {
        Asked::Hold { event, until, no_hooks } => hold(state, event, *until, *no_hooks, asker),
        Asked::Release { event } => release(state, event, asker),
        Asked::Pause { until } => pause(state, *until, asker),
        Asked::Resume => resume(state, asker),
        Asked::Approve { event, revision, over_budget } => approve(state, event, *revision, *over_budget, asker),
        Asked::Restored { member } => {
            slots::declare_restored(state, member)?;
            note(state, asker, What::Restored(member.clone()));
            Ok(())
        }
        Asked::Skip { event, member, hook } => skip(state, event, member, *hook, asker),
        Asked::Wish { what } => {
            note(state, asker, What::Other(what.clone()));
            Ok(())
        }
    }
}

fn hold(state: &mut State, id: &EventId, until: Timestamp, no_hooks: bool, asker: Asker<'_>) -> Applied {
    is_bounded(state, until)?;
    if undecided(state, id)?.is_drill() {
        return Err(Ignored::NotDue);
    }
    about(state, id, asker, What::Hold { until, no_hooks })
}

fn release(state: &mut State, id: &EventId, asker: Asker<'_>) -> Applied {
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    event.hold(state.now).ok_or(Ignored::Repeated)?;
    about(state, id, asker, What::Release)
}

fn pause(state: &mut State, until: Timestamp, asker: Asker<'_>) -> Applied {
    is_bounded(state, until)?;
    note(state, asker, What::Pause { until });
    Ok(())
}

fn resume(state: &mut State, asker: Asker<'_>) -> Applied {
    state.pause(state.now).ok_or(Ignored::Repeated)?;
    note(state, asker, What::Resume);
    Ok(())
}

/// Overrules hooks, and the time for which an event would wait; slots only where that is said. Never an explicit hold.
fn approve(state: &mut State, id: &EventId, revision: u64, over_budget: bool, asker: Asker<'_>) -> Applied {
    let event = undecided(state, id)?;
    if event.is_approved_by_operator() && event.is_over_budget() >= over_budget {
        return Err(Ignored::Repeated);
    }
    if event.is_drill() || state.observed_status(id) != Some(&Status::Scheduled) {
        return Err(Ignored::NotNow);
    }
    if event.hold(state.now).is_some() {
        return Err(Ignored::Held);
    }
    if state.pause(state.now).is_some() {
        return Err(Ignored::Paused);
    }
    if event.revision != revision {
        return Err(Ignored::Changed);
    }
    about(state, id, asker, What::Approve { revision, over_budget })
}

/// What puts back is owed and never skipped.
fn skip(state: &mut State, id: &EventId, member: &Member, hook: HookId, asker: Asker<'_>) -> Applied {
    let now = state.now;
    let event = undecided(state, id)?;
    let steps = needs::preparing(state, event);
    let step = steps.iter().find(|step| step.member == *member && step.id == hook).ok_or(Ignored::NotDue)?;
    if progress::progress(event, step, now) == Progress::Favourable {
        return Err(Ignored::Repeated);
    }
    let why = WaiverReason::Skipped { who: asker.who.into(), reason: asker.reason.into() };
    let event = open(state, id)?;
    event.waivers.push(Waiver { member: member.clone(), hook, why, at: now });
    event.revision += 1;
    state.wished += 1;
    Ok(())
}

/// A wish about no single event.
fn note(state: &mut State, asker: Asker<'_>, what: What) {
    let wish = next(state, asker, what);
    keep(&mut state.wishes, wish);
}

fn about(state: &mut State, id: &EventId, asker: Asker<'_>, what: What) -> Applied {
    let wish = next(state, asker, what);
    let event = open(state, id)?;
    keep(&mut event.wishes, wish);
    event.revision += 1;
    Ok(())
}

fn next(state: &mut State, asker: Asker<'_>, what: What) -> Wish {
    state.wished += 1;
    Wish { number: state.wished, at: state.now, who: asker.who.into(), reason: asker.reason.into(), what }
}

/// What is in force stays, however many came after it.
fn keep(wishes: &mut Vec<Wish>, wish: Wish) {
    wishes.push(wish);
    let kinds = [Wish::holds_or_releases, Wish::holds_or_approves, Wish::pauses_or_resumes];
    while wishes.len() > WISH_LIMIT || wishes.iter().map(Wish::bytes).sum::<usize>() > WISHES_BYTES {
        let in_force = kinds.map(|kind| last(wishes, kind).map(|wish| wish.number));
        let Some(place) = wishes.iter().position(|wish| !in_force.contains(&Some(wish.number))) else { return };
        wishes.remove(place);
    }
}

fn is_bounded(state: &State, until: Timestamp) -> Applied {
    if state.now < until && until <= state.now.plus(HOLD_AT_MOST) { Ok(()) } else { Err(Ignored::Unbounded) }
}

/// Nobody has decided yet that it is to start, and it has not started.
fn undecided<'a>(state: &'a State, id: &EventId) -> Result<&'a Event, Ignored> {
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if event.stage() <= Stage::Preparing && !event.may_be_approved() { Ok(event) } else { Err(Ignored::Late) }
}
