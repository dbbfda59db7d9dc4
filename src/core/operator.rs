//! What operators ask for (`behaviour.md` 11): the part of `apply` that takes a wish over, and what of it is in force.
//!
//! A hold or a pause stops claims and nothing else; a claim that was made is never taken back. Both end by themselves.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::apply::{Applied, open};
use super::attempt::{Waiver, WaiverReason};
use super::command::Ignored;
use super::document::Status;
use super::event::Event;
use super::id::{EventId, VmName};
use super::lifecycle::Stage;
use super::room::WISHES_BYTES;
use super::situation::Situation;
use super::slot_changes;
use super::state::State;
use super::steps::{self, Progress};
use super::time::Timestamp;
use super::workload::{HookId, Member};

/// No hold and no pause is longer: whoever forgets one is not to find out by the next disaster.
pub const HOLD_AT_MOST: Duration = Duration::from_hours(30 * 24);
/// Of one event, and of those about no single event, the latest are kept, and whatever is in force.
pub const WISH_LIMIT: usize = 100;

/// What an operator asks for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Asked {
    /// The event is not to be approved before this time.
    Hold {
        event: EventId,
        until: Timestamp,
        /// No hook is begun either, in last call too.
        no_hooks: bool,
    },
    Release {
        event: EventId,
    },
    /// Nothing is to be approved before this time.
    Pause {
        until: Timestamp,
    },
    Resume,
    /// The event is to be approved without what is left of its preparation, as it was seen at this revision.
    Approve {
        event: EventId,
        revision: u64,
        /// Whoever else of its groups is out.
        over_budget: bool,
    },
    /// The member is in service, whatever became of its restore.
    Restored {
        member: Member,
    },
    /// This hook is not to be waited for.
    Skip {
        event: EventId,
        member: Member,
        hook: HookId,
    },
    /// About members or leadership: carried out elsewhere, and noted in the log.
    Wish {
        what: String,
    },
}

impl Asked {
    /// For logs and metrics.
    pub const fn as_word(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Release { .. } => "release",
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Approve { .. } => "approve",
            Self::Restored { .. } => "restored",
            Self::Skip { .. } => "skip",
            Self::Wish { .. } => "wish",
        }
    }
}

/// Something that an operator asked for, as it was taken over.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Wish {
    /// Counts the wishes of a cluster, so that a replica can say how many of them it knows.
    pub number: u64,
    pub at: Timestamp,
    pub who: String,
    pub reason: String,
    pub what: What,
}

/// The same, where it is kept: with its event, or beside all of them. A skipped hook is a waiver.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum What {
    Hold { until: Timestamp, no_hooks: bool },
    Release,
    Approve { revision: u64, over_budget: bool },
    Restored(Member),
    Pause { until: Timestamp },
    Resume,
    Other(String),
}

/// A hold or a pause that is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Halt {
    pub number: u64,
    pub by: String,
    pub until: Timestamp,
    pub reason: String,
    /// Hooks are held, too.
    pub no_hooks: bool,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}: {}", self.by, self.reason)
    }
}

impl Wish {
    const fn holds_or_releases(&self) -> bool {
        matches!(self.what, What::Hold { .. } | What::Release)
    }

    const fn holds_or_approves(&self) -> bool {
        matches!(self.what, What::Hold { .. } | What::Approve { .. })
    }

    const fn pauses_or_resumes(&self) -> bool {
        matches!(self.what, What::Pause { .. } | What::Resume)
    }

    fn halt(&self, now: Timestamp) -> Option<Halt> {
        let (until, no_hooks) = match self.what {
            What::Hold { until, no_hooks } => (until, no_hooks),
            What::Pause { until } => (until, false),
            What::Release | What::Approve { .. } | What::Resume | What::Restored(_) | What::Other(_) => return None,
        };
        let Self { number, who: by, reason, .. } = self.clone();
        (now < until).then_some(Halt { number, by, until, reason, no_hooks })
    }
}

fn last(wishes: &[Wish], such: impl Fn(&Wish) -> bool) -> Option<&Wish> {
    wishes.iter().rev().find(|wish| such(wish))
}

impl Event {
    /// The hold that is in force; none outlives the event.
    pub fn hold(&self, now: Timestamp) -> Option<Halt> {
        let halt = last(&self.wishes, Wish::holds_or_releases)?.halt(now);
        halt.filter(|_| self.stage() < Stage::Started)
    }

    /// An operator approved it, and nobody has held it since.
    pub fn is_approved_by_operator(&self) -> bool {
        // Of what they saw: not of what has become of it.
        let is_of_this = |wish: &Wish| matches!(wish.what, What::Approve { revision, .. } if revision >= self.decision);
        last(&self.wishes, Wish::holds_or_approves).is_some_and(is_of_this)
    }

    /// An operator approved it whoever else is out, and nobody has held it since.
    pub fn is_over_budget(&self) -> bool {
        let last = last(&self.wishes, Wish::holds_or_approves);
        let is_it = |wish: &Wish| matches!(wish.what, What::Approve { over_budget: true, .. });
        self.is_approved_by_operator() && last.is_some_and(is_it)
    }

    /// An operator does not want this hook to be waited for.
    pub fn is_skipped(&self, member: &Member, hook: HookId) -> bool {
        let skips = |waiver: &Waiver| matches!(waiver.why, WaiverReason::Skipped { .. });
        self.waivers.iter().any(|waiver| waiver.member == *member && waiver.hook == hook && skips(waiver))
    }
}

impl State {
    /// The pause that is in force.
    pub fn pause(&self, now: Timestamp) -> Option<Halt> {
        last(&self.wishes, Wish::pauses_or_resumes)?.halt(now)
    }
}

/// Whoever may not know of a wish yet and could come to act alone: cut off, it would approve against it.
pub fn unaware(state: &State, situation: &Situation, number: u64) -> Vec<VmName> {
    let is_aware = |name: &VmName| situation.contacts.get(name).is_some_and(|contact| contact.wishes >= number);
    // One that is configured and never took part cannot act alone.
    let has_come = |name: &VmName| state.replicas.contains_key(name) || state.suspicions.contains_key(name);
    let voters = situation.members.iter().filter(|name| !situation.learners.contains(name) && has_come(name));
    let removed = state.suspects().filter(|name| !situation.members.contains(name));
    voters.chain(removed).filter(|name| !is_aware(name)).cloned().collect()
}

/// Who asks, and why.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) who: &'a str,
    pub(super) reason: &'a str,
}

pub(super) fn ask(state: &mut State, what: &Asked, asker: Asker<'_>) -> Applied {
    match what {
        Asked::Hold { event, until, no_hooks } => hold(state, event, *until, *no_hooks, asker),
        Asked::Release { event } => release(state, event, asker),
        Asked::Pause { until } => pause(state, *until, asker),
        Asked::Resume => resume(state, asker),
        Asked::Approve { event, revision, over_budget } => approve(state, event, *revision, *over_budget, asker),
        Asked::Restored { member } => {
            slot_changes::declare_restored(state, member)?;
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
    let steps = steps::preparing(state, event);
    let step = steps.iter().find(|step| step.member == *member && step.id == hook).ok_or(Ignored::NotDue)?;
    if steps::progress(event, step, now) == Progress::Favourable {
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
