//! How far the hooks that an event needs are, and which may be begun. Everything is derived from the attempts.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::LazyCell;
use core::time::Duration;

use super::attempt::{Attempt, Outcome};
use super::document::Status;
use super::event::Event;
use super::id::WorkloadName;
use super::last_call;
use super::lifecycle::Stage;
pub use super::needs::{Step, preparing};
use super::order;
use super::restoring;
use super::slot::SlotState;
use super::slots;
use super::state::State;
use super::time::Timestamp;
use super::workload::{Intent, Member, OnAbsent, OnFailure, Phase, Role};

/// The pause before the second attempt; doubled for each further one.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(30);
const RESTORE_AGAIN_AFTER_AT_MOST: Duration = Duration::from_mins(1);
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
pub fn progress<'a>(event: &Event, step: &Step<'a>, now: Timestamp) -> Progress<'a> {
    if step.is_undo {
        return restoring::taking_back(step, now);
    }
    match forward(event, step, now) {
        Progress::Failed(why) => restoring::of_failover(event, step, now).unwrap_or(Progress::Failed(why)),
        other => other,
    }
}

/// The same, whatever is taken back meanwhile.
pub fn forward<'a>(event: &Event, step: &Step<'a>, now: Timestamp) -> Progress<'a> {
    if step.is_done_elsewhere
        || event.waivers.iter().any(|waiver| waiver.member == step.member && waiver.hook == step.id)
    {
        return Progress::Favourable;
    }
    let ends = event.time_ends(step.id.phase);
    let out_of_time = ends.is_some_and(|ends| now >= ends);
    let last = step.forward().next_back();
    // What was done to it is put back when it comes again.
    if step.away == Some(OnAbsent::Skip)
        && step.id.phase < Phase::Restore
        && last.is_none_or(|last| last.outcome.is_some())
    {
        return Progress::Favourable;
    }
    let Some(last) = last else {
        let from = if step.id.phase < Phase::Restore { event.first_seen() } else { now };
        return due(Intent::Run, from, None, out_of_time);
    };
    let Some((outcome, at)) = &last.outcome else {
        return Progress::Running(last);
    };
    let runs = step.forward().filter(|attempt| is_spent(attempt)).count();
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
        if may_repeat(step, runs) {
            due(Intent::Run, at.plus(pause_after(step, runs)), None, out_of_time)
        } else {
            failed()
        }
    };
    // A question without an answer leaves it as doubtful as it was.
    if last.intent == Intent::Confirm && !matches!(outcome, Outcome::Done | Outcome::NotApplicable | Outcome::NotDone) {
        // What hung, and cannot say whether it is done, is not waited for any longer.
        let hangs = matches!(outcome, Outcome::TimedOut(_) | Outcome::Failed(_) | Outcome::Cancelled);
        if hangs && has_timed_out(step) {
            return if step.id.phase == Phase::Failover { failed() } else { again() };
        }
        let why = outcome.reason().map(String::from);
        return due(Intent::Confirm, at.plus(backoff(asked(step))), why, out_of_time);
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
        // What was stopped to take the member away once more is due again when it returns.
        Outcome::Cancelled if step.id.phase >= Phase::Restore => again(),
        Outcome::Cancelled => failed(),
    }
}

fn due<'a>(intent: Intent, from: Timestamp, blocked: Option<String>, out_of_time: bool) -> Progress<'a> {
    if out_of_time { Progress::OutOfTime } else { Progress::Due { intent, from, blocked } }
}

/// Attempts that count against the number a hook has.
fn is_spent(attempt: &Attempt) -> bool {
    attempt.intent == Intent::Run && !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))
}

/// What it was asked about is that it was stopped at its deadline.
fn has_timed_out(step: &Step<'_>) -> bool {
    let last_run = step.forward().rfind(|attempt| attempt.intent == Intent::Run);
    last_run.is_some_and(|run| matches!(run.outcome, Some((Outcome::TimedOut(_), _))))
}

/// How often in a row it was asked for lately.
fn asked(step: &Step<'_>) -> usize {
    let asked = step.forward().rev().take_while(|attempt| attempt.intent == Intent::Confirm);
    let times = asked.map(|attempt| 1 + attempt.blocked.map_or(0, |blocked| blocked.times.saturating_sub(1)));
    usize::try_from(times.fold(0_u32, u32::saturating_add)).unwrap_or(usize::MAX)
}

/// Restoring is owed for as long as it takes; everything else has a number of attempts.
fn may_repeat(step: &Step<'_>, runs: usize) -> bool {
    step.id.phase >= Phase::Restore || runs < usize::try_from(step.hook.attempts).unwrap_or(usize::MAX)
}

fn pause_after(step: &Step<'_>, runs: usize) -> Duration {
    if step.id.phase == Phase::Restore {
        return (RETRY_AFTER * (1 << doublings(runs, 6))).min(RESTORE_AGAIN_AFTER_AT_MOST);
    }
    backoff(runs)
}

/// Since when the step has answered that it is blocked, without another answer in between.
pub fn blocked_since(step: &Step<'_>) -> Option<Timestamp> {
    let known = step.forward().rev().filter(|attempt| attempt.outcome.is_some() || attempt.blocked.is_some());
    known.map_while(Attempt::blocked_since).min()
}

/// Something runs that brings the member back.
pub fn is_being_restored(state: &State, member: &Member) -> bool {
    let runs = |attempt: &Attempt| {
        attempt.member == *member && attempt.outcome.is_none() && attempt.hook.phase >= Phase::Restore
    };
    state.open_events().filter(|event| !event.is_dry_run()).any(|event| event.attempts.iter().any(runs))
}

/// A restore of the member was begun in its present stint, however it ended.
pub fn is_restore_begun(state: &State, member: &Member) -> bool {
    let Some(slot) = state.slots.get(member) else { return false };
    let is_restore = |attempt: &Attempt| {
        let brings_back = attempt.hook.phase >= Phase::Restore || attempt.intent == Intent::Undo;
        attempt.member == *member && attempt.stint == slot.stint && brings_back
    };
    state.open_events().any(|event| event.attempts.iter().any(is_restore))
}

pub(super) fn backoff(runs: usize) -> Duration {
    (RETRY_AFTER * (1 << doublings(runs, 5))).min(RETRY_AFTER_AT_MOST)
}

fn doublings(runs: usize, most: u32) -> u32 {
    u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX).min(most)
}

/// A `done` that is too old to be relied on.
pub fn is_stale(step: &Step<'_>, now: Timestamp) -> bool {
    let (Some(fresh_for), true) = (step.hook.fresh_for, step.hook.can_confirm) else {
        return false;
    };
    let last = step.forward().next_back().and_then(|last| last.outcome.as_ref());
    matches!(last, Some((Outcome::Done, at)) if now.since(*at) > fresh_for)
}

/// The step no longer stands in the way of those behind it.
pub fn lets_pass(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    match progress(event, step, now) {
        Progress::Favourable => true,
        // What cannot be taken back does not keep the rest from being put back.
        Progress::Failed(_) => step.on_failure == OnFailure::Continue || step.is_undo,
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
pub fn next<'a>(state: &'a State, event: &'a Event, now: Timestamp) -> Vec<Next<'a>> {
    let mut found = match event.stage() {
        Stage::Announced | Stage::Preparing if event.is_approved_by_operator() => Vec::new(),
        Stage::Announced | Stage::Preparing if now < event.preparation_starts() || event.is_taken_over() => Vec::new(),
        Stage::Announced | Stage::Preparing if event.hold(now).is_some_and(|hold| hold.no_hooks) => Vec::new(),
        Stage::Announced | Stage::Preparing => next_preparing(state, event, now),
        Stage::Started if event.entered_at(Stage::Started) == Some(event.first_seen()) => {
            next_preparing(state, event, now)
        }
        Stage::Approved if event.is_reopened() && !event.is_approved_by_operator() => next_preparing(state, event, now),
        Stage::Claimed | Stage::Approved | Stage::Started | Stage::Restoring | Stage::Closed => Vec::new(),
    };
    found.extend(next_restoring(state, event, now));
    order::keep_apart(state, &mut found);
    found
}

fn next_restoring<'a>(state: &'a State, event: &Event, now: Timestamp) -> Vec<Next<'a>> {
    // What still runs for the same workload is stopped first.
    let busy = LazyCell::new(|| order::busy(state));
    first_due(event, &restoring::steps(state, event), now, |step, _| !busy.contains(&step.member))
}

fn next_preparing<'a>(state: &'a State, event: &'a Event, now: Timestamp) -> Vec<Next<'a>> {
    let steps = preparing(state, event);
    let circles = LazyCell::new(|| order::circles(state));
    // Looks at all that is open, and most of that waits for nothing.
    let busy = LazyCell::new(|| order::busy(state));
    let may_disrupt = LazyCell::new(|| slots::may_disrupt(state, event, now));
    // It may be over: what runs goes on, and nothing more is taken away.
    let is_missing = state.observed_status(&event.announcement.id) == Some(&Status::Missing);
    let is_let = |step: &Step<'_>| {
        if is_missing {
            return false;
        }
        let has_slot = step.stint > 0 || event.is_dry_run();
        !step.id.phase.is_disruptive() || (has_slot && *may_disrupt && is_in_order(state, event, &steps, step, now))
    };
    let mut found = first_due(event, &steps, now, |step, intent| {
        // To ask, and to take back what failed, takes nothing away.
        if busy.contains(&step.member) || (intent == Intent::Run && !is_let(step)) {
            return false;
        }
        let after: Vec<&WorkloadName> = order::after(state, &step.member, |name| circles.contains(name)).collect();
        after.is_empty()
            || steps
                .iter()
                .filter(|other| after.contains(&&other.member.workload))
                .all(|other| lets_pass(event, other, now))
    });
    if now < event.preparation_ends() {
        let doubtful = steps.iter().filter(|step| is_stale(step, now) && !busy.contains(&step.member));
        let doubtful = doubtful.filter(|step| {
            let is_all = steps.iter().all(|step| lets_pass(event, step, now));
            is_all || (step.id.phase == Phase::Checkpoint && is_about_to_go(event, &steps, &step.member, now))
        });
        found.extend(doubtful.map(|step| Next { step: step.clone(), intent: Intent::Confirm }));
    }
    found
}

/// Nothing that takes service away was begun yet for the member, and it has its slot.
fn is_about_to_go(event: &Event, steps: &[Step<'_>], member: &Member, now: Timestamp) -> bool {
    let mut own = steps.iter().filter(|step| step.member == *member && step.id.phase.is_disruptive());
    own.next().is_some_and(|first| {
        first.stint > 0 && first.attempts.is_empty() && matches!(progress(event, first, now), Progress::Due { .. })
    })
}

/// What a disruptive step waits for beside its slot: a checkpoint that is too old is confirmed first, a primary moves
/// before anything else takes it away (R8), and in last call some hooks are left out (R7).
fn is_in_order(state: &State, event: &Event, steps: &[Step<'_>], step: &Step<'_>, now: Timestamp) -> bool {
    let own = || steps.iter().filter(|other| other.member == step.member);
    let is_fresh = || {
        let has_begun = own().any(|other| other.id.phase.is_disruptive() && !other.attempts.is_empty());
        has_begun || !own().any(|other| other.id.phase == Phase::Checkpoint && is_stale(other, now))
    };
    let has_moved = || {
        let is_primary = state.role(&step.member) == Role::Primary;
        let mut failovers = own().filter(|other| other.id.phase == Phase::Failover);
        step.id.phase == Phase::Failover
            || !is_primary
            || failovers.all(|other| matches!(progress(event, other, now), Progress::Favourable))
    };
    last_call::lets_run(state, event, step, now) && is_fresh() && has_moved()
}

/// The first step of each workload that is due, provided those before it let it pass and `gate` opens.
fn first_due<'a>(
    event: &Event,
    steps: &[Step<'a>],
    now: Timestamp,
    gate: impl Fn(&Step<'a>, Intent) -> bool,
) -> Vec<Next<'a>> {
    let mut found: Vec<Next<'a>> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let Progress::Due { intent, from, .. } = progress(event, step, now) else {
            continue;
        };
        // Those of one workload stand together.
        let mut before = steps[..place].iter().rev().take_while(|other| other.member == step.member);
        if now >= from && before.all(|other| lets_pass(event, other, now)) && gate(step, intent) {
            found.push(Next { step: step.clone(), intent });
        }
    }
    found
}

/// An open attempt is still to be run; otherwise it is cancelled.
pub fn is_wanted(state: &State, event: &Event, attempt: &Attempt) -> bool {
    let is_dropped = event.is_approved_by_operator() || event.is_skipped(&attempt.member, attempt.hook);
    let slot = state.slots.get(&attempt.member).filter(|slot| slot.stint == attempt.stint);
    let is_returning = slot.is_some_and(|slot| slot.state == SlotState::Returning);
    if attempt.hook.phase >= Phase::Restore && !event.is_dry_run() {
        return is_returning;
    }
    if attempt.intent == Intent::Undo && is_returning {
        return true;
    }
    if is_dropped || event.stage().is_over() {
        return false;
    }
    // Whoever signed off by force is asked nothing any more, and nothing is known of what it was doing.
    if !state.is_restorable(&attempt.member) {
        return event.stage() < Stage::Started;
    }
    // What the event has given back it does not take away.
    if attempt.hook.phase.is_disruptive() && !event.is_dry_run() {
        return slot.is_some_and(|slot| slot.events.contains(&event.announcement.id))
            // A failover that is under way may finish: stopped half way it would leave the group without a primary.
            && (event.stage() < Stage::Started || attempt.hook.phase == Phase::Failover);
    }
    event.stage() < Stage::Started
}

/// It runs on though less time is left for it than when it was begun.
pub fn is_overrun(event: &Event, attempt: &Attempt, now: Timestamp) -> bool {
    let ends = event.deadline_of(attempt);
    event.stage() < Stage::Started && ends < attempt.deadline && now >= ends
}
