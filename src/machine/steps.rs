//! How far the hooks that an event needs are, and which may be begun. Everything is derived from the attempts.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::LazyCell;
use core::time::Duration;

use super::attempt::{Attempt, Outcome};
use super::drill;
use super::event::Event;
use super::id::WorkloadName;
use super::lifecycle::Stage;
pub use super::needs::{Step, preparing};
use super::order;
use super::restoring;
use super::state::State;
use super::time::Timestamp;
use super::workload::{Intent, OnAbsent, OnFailure, Phase};

/// The pause before the second attempt; doubled for each further one.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(30);
/// The pause before a blocked hook is tried again.
pub(super) const BLOCKED_RETRY_AFTER: Duration = Duration::from_secs(5);

/// How far a step is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress<'a> {
    /// To be begun, with this intent, from this time on.
    Due {
        intent: Intent,
        from: Timestamp,
        blocked: Option<String>,
    },
    Running(&'a Attempt),
    /// Done, not applicable, or waived.
    Favourable,
    Failed(String),
    /// Not settled when the time for preparation was up.
    OutOfTime,
}

/// How far a step is at a time.
pub fn progress<'a>(event: &'a Event, step: &Step<'_>, now: Timestamp) -> Progress<'a> {
    if event.stage().is_over() && step.id.phase < Phase::Restore {
        return restoring::taking_back(event, step, now);
    }
    match forward(event, step, now) {
        Progress::Failed(why) => restoring::of_failover(event, step, now).unwrap_or(Progress::Failed(why)),
        other => other,
    }
}

/// The same, whatever is taken back meanwhile.
pub fn forward<'a>(event: &'a Event, step: &Step<'_>, now: Timestamp) -> Progress<'a> {
    if event.waivers.iter().any(|waiver| waiver.member == step.member && waiver.hook == step.id) {
        return Progress::Favourable;
    }
    let ends = time_ends(event, step);
    let out_of_time = ends.is_some_and(|ends| now >= ends);
    let last = event.forward_attempts_of(&step.member, step.id).next_back();
    // What was done to it is put back when it comes again.
    if step.away == Some(OnAbsent::Skip)
        && step.id.phase < Phase::Restore
        && last.is_none_or(|last| last.outcome.is_some())
    {
        return Progress::Favourable;
    }
    let Some(last) = last else {
        let from = if step.id.phase < Phase::Restore { event.first_seen() } else { event.over_at().unwrap_or(now) };
        return due(Intent::Run, from, None, out_of_time);
    };
    let Some((outcome, at)) = &last.outcome else {
        return Progress::Running(last);
    };
    let runs = event.forward_attempts_of(&step.member, step.id).filter(|attempt| is_spent(attempt)).count();
    let failed = || {
        // What the end of the time for preparation cut short has not failed; what vanished before it has.
        let is_cut_short = ends.is_some_and(|ends| match outcome {
            Outcome::TimedOut(_) => last.deadline >= ends,
            Outcome::Unknown(_) | Outcome::Cancelled => *at >= ends,
            Outcome::Done | Outcome::NotApplicable | Outcome::NotDone | Outcome::Failed(_) | Outcome::Blocked(_) => {
                false
            }
        });
        if is_cut_short {
            return Progress::OutOfTime;
        }
        Progress::Failed(outcome.reason().unwrap_or_else(|| outcome.as_word()).into())
    };
    let again = || {
        if may_repeat(step, runs) { due(Intent::Run, at.plus(backoff(runs)), None, out_of_time) } else { failed() }
    };
    // A question without an answer leaves it as doubtful as it was.
    if last.intent == Intent::Confirm && !matches!(outcome, Outcome::Done | Outcome::NotApplicable | Outcome::NotDone) {
        // What hung, and cannot say whether it is done, is not waited for any longer.
        let hangs = matches!(outcome, Outcome::TimedOut(_) | Outcome::Failed(_) | Outcome::Cancelled);
        if hangs && has_timed_out(event, step) {
            return if step.id.phase == Phase::Failover { failed() } else { again() };
        }
        let why = outcome.reason().map(String::from);
        return due(Intent::Confirm, at.plus(backoff(asked(event, step))), why, out_of_time);
    }
    match outcome {
        Outcome::Done | Outcome::NotApplicable => Progress::Favourable,
        Outcome::Blocked(reason) => due(Intent::Run, at.plus(BLOCKED_RETRY_AFTER), Some(reason.clone()), out_of_time),
        // What was stopped may be done, or half done.
        Outcome::Unknown(_) | Outcome::TimedOut(_) if step.hook.can_confirm => {
            due(Intent::Confirm, *at, None, out_of_time)
        }
        // A failover nobody can be asked about is never run again by itself.
        Outcome::Unknown(_) | Outcome::TimedOut(_) if step.id.phase == Phase::Failover => failed(),
        Outcome::NotDone | Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Unknown(_) => again(),
        Outcome::Cancelled => failed(),
    }
}

/// The last moment for a step. What is away and may be passed over is not waited for longer than what gets ready.
fn time_ends(event: &Event, step: &Step<'_>) -> Option<Timestamp> {
    let ends = event.time_ends(&step.member, step.id.phase);
    if step.away == Some(OnAbsent::Skip) { ends.or(event.restoring_ends()) } else { ends }
}

fn due<'a>(intent: Intent, from: Timestamp, blocked: Option<String>, out_of_time: bool) -> Progress<'a> {
    if out_of_time { Progress::OutOfTime } else { Progress::Due { intent, from, blocked } }
}

/// Attempts that count against the number a hook has.
fn is_spent(attempt: &Attempt) -> bool {
    attempt.intent == Intent::Run && !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))
}

/// What it was asked about is that it was stopped at its deadline.
fn has_timed_out(event: &Event, step: &Step<'_>) -> bool {
    let last_run = event.forward_attempts_of(&step.member, step.id).rfind(|attempt| attempt.intent == Intent::Run);
    last_run.is_some_and(|run| matches!(run.outcome, Some((Outcome::TimedOut(_), _))))
}

/// How often in a row it was asked for lately.
fn asked(event: &Event, step: &Step<'_>) -> usize {
    event
        .forward_attempts_of(&step.member, step.id)
        .rev()
        .take_while(|attempt| attempt.intent == Intent::Confirm)
        .count()
}

/// `Ready` is asked until it holds.
fn may_repeat(step: &Step<'_>, runs: usize) -> bool {
    step.id.phase == Phase::Ready || runs < usize::try_from(step.hook.attempts).unwrap_or(usize::MAX)
}

pub(super) fn backoff(runs: usize) -> Duration {
    let doublings = u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX).min(5);
    (RETRY_AFTER * (1 << doublings)).min(RETRY_AFTER_AT_MOST)
}

/// A `done` that is too old to be relied on.
pub fn is_stale(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    let (Some(fresh_for), true) = (step.hook.fresh_for, step.hook.can_confirm) else {
        return false;
    };
    event
        .forward_attempts_of(&step.member, step.id)
        .next_back()
        .is_some_and(|last| matches!(&last.outcome, Some((Outcome::Done, at)) if now.since(*at) > fresh_for))
}

/// The step no longer stands in the way of those behind it.
pub fn lets_pass(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    match progress(event, step, now) {
        Progress::Favourable => true,
        // What cannot be taken back does not keep the rest from being put back.
        Progress::Failed(_) => {
            step.hook.on_failure == OnFailure::Continue || (event.stage().is_over() && step.id.phase < Phase::Restore)
        }
        Progress::Due { .. } | Progress::Running(_) | Progress::OutOfTime => false,
    }
}

/// An attempt that may be begun now.
#[derive(Clone, Debug)]
pub struct Next<'a> {
    pub step: Step<'a>,
    pub intent: Intent,
}

/// The attempts that may be begun at a time; `plan` begins them and `apply` refuses any other.
pub fn next<'a>(state: &'a State, event: &Event, now: Timestamp) -> Vec<Next<'a>> {
    match event.stage() {
        Stage::Announced | Stage::Preparing if event.is_approved_by_operator() => Vec::new(),
        Stage::Announced | Stage::Preparing if now < event.preparation_starts() || event.is_taken_over() => Vec::new(),
        Stage::Announced | Stage::Preparing => next_preparing(state, event, now),
        Stage::Started if event.entered_at(Stage::Started) == Some(event.first_seen()) => {
            next_preparing(state, event, now)
        }
        // A document that lists it again is waited out: nothing is put back on a VM that may be about to go.
        Stage::Restoring if state.is_listed(&event.announcement.id) => Vec::new(),
        Stage::Restoring => next_restoring(state, event, now),
        Stage::Claimed | Stage::Approved | Stage::Started | Stage::Closed => Vec::new(),
    }
}

fn next_restoring<'a>(state: &'a State, event: &Event, now: Timestamp) -> Vec<Next<'a>> {
    let busy = LazyCell::new(|| order::busy_elsewhere(state, event));
    let mut found = first_due(event, &restoring::steps(state, event), now, |step| {
        // What still runs for the same workload is stopped first.
        !drill::is_wanted_away(state, event, &step.member, now)
            && !order::is_wanted_away(state, event, &step.member)
            && !busy.contains(&step.member)
            && !event.attempts.iter().any(|attempt| {
                attempt.hook.phase < Phase::Restore && attempt.outcome.is_none() && attempt.member == step.member
            })
    });
    order::keep_apart(state, event, &mut found);
    found
}

fn next_preparing<'a>(state: &'a State, event: &Event, now: Timestamp) -> Vec<Next<'a>> {
    let steps = preparing(state, event);
    let circles = LazyCell::new(|| order::circles(state));
    // Looks at all that is open, and most of that waits for nothing.
    let busy = LazyCell::new(|| order::busy_elsewhere(state, event));
    let mut found = first_due(event, &steps, now, |step| {
        if busy.contains(&step.member) || order::held_back(state, event, step, now).is_some() {
            return false;
        }
        let after: Vec<&WorkloadName> = order::after(state, &step.member, |name| circles.contains(name)).collect();
        after.is_empty()
            || steps
                .iter()
                .filter(|other| after.contains(&&other.member.workload))
                .all(|other| lets_pass(event, other, now))
    });
    order::keep_apart(state, event, &mut found);
    if now < event.preparation_ends() && steps.iter().all(|step| lets_pass(event, step, now)) {
        let doubtful = steps.into_iter().filter(|step| is_stale(event, step, now) && !busy.contains(&step.member));
        found.extend(doubtful.map(|step| Next { step, intent: Intent::Confirm }));
    }
    found
}

/// The first step of each workload that is due, provided those before it let it pass and `gate` opens.
fn first_due<'a>(event: &Event, steps: &[Step<'a>], now: Timestamp, gate: impl Fn(&Step<'a>) -> bool) -> Vec<Next<'a>> {
    let mut found: Vec<Next<'a>> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let Progress::Due { intent, from, .. } = progress(event, step, now) else {
            continue;
        };
        // Those of one workload stand together.
        let mut before = steps[..place].iter().rev().take_while(|other| other.member == step.member);
        if now >= from && before.all(|other| lets_pass(event, other, now)) && gate(step) {
            found.push(Next { step: step.clone(), intent });
        }
    }
    found
}

/// An open attempt is still to be run; otherwise it is cancelled.
pub fn is_wanted(event: &Event, attempt: &Attempt) -> bool {
    let is_dropped = event.is_approved_by_operator() || event.is_skipped(&attempt.member, attempt.hook);
    if is_dropped && attempt.hook.phase < Phase::Restore {
        return false;
    }
    match event.stage() {
        Stage::Announced | Stage::Preparing | Stage::Claimed | Stage::Approved => true,
        // A failover that is under way may finish: stopped half way it would leave the group without a primary.
        Stage::Started => attempt.hook.phase == Phase::Failover,
        Stage::Restoring | Stage::Closed => attempt.hook.phase >= Phase::Restore || attempt.intent == Intent::Undo,
    }
}

/// It runs on though less time is left for it than when it was begun.
pub fn is_overrun(event: &Event, attempt: &Attempt, now: Timestamp) -> bool {
    let ends = event.deadline_of(attempt);
    event.stage() < Stage::Started && ends < attempt.deadline && now >= ends
}
