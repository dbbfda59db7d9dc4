//! Which hooks an event needs, in which order, and how far each is. Everything is derived from the attempts.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::attempt::{Attempt, Outcome};
use super::drill;
use super::event::Event;
use super::id::WorkloadName;
use super::left_out::{left_out, may_run};
use super::lifecycle::Stage;
use super::policy::Action;
use super::state::State;
use super::time::Timestamp;
use super::workload::{Hook, HookId, Intent, Member, OnFailure, Phase, Workload};

/// The pause before the second attempt; doubled for each further one.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(30);
/// The pause before a blocked hook is tried again.
const BLOCKED_RETRY_AFTER: Duration = Duration::from_secs(5);

/// One hook of one affected workload.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub member: Member,
    pub id: HookId,
    pub hook: &'a Hook,
}

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

/// The hooks that prepare the affected workloads; those of one workload stand in the order in which they run.
pub fn preparing<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    let Some(treatment) = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare) else {
        return Vec::new();
    };
    let mut phases: Vec<Phase> = treatment.phases.iter().copied().filter(|phase| *phase < Phase::Restore).collect();
    phases.sort_unstable();
    phases.dedup();
    affected(state, event)
        .flat_map(|(member, workload)| {
            let mut steps = Vec::new();
            for phase in &phases {
                for (id, hook) in workload.hooks_of(*phase) {
                    if left_out(event, treatment, hook).is_none() {
                        steps.push(Step { member: member.clone(), id, hook });
                    }
                }
            }
            steps
        })
        .collect()
}

/// The hooks that put back what was touched, also on a VM that the event no longer names.
pub fn restoring<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    members(state)
        .filter(|(member, _)| event.touched(member))
        .flat_map(|(member, workload)| {
            [Phase::Restore, Phase::Ready]
                .into_iter()
                .flat_map(|phase| workload.hooks_of(phase))
                .filter(|(_, hook)| may_run(event, hook))
                .map(move |(id, hook)| Step { member: member.clone(), id, hook })
        })
        .collect()
}

pub(super) fn affected<'a>(state: &'a State, event: &Event) -> impl Iterator<Item = (Member, &'a Workload)> {
    members(state).filter(|(member, _)| event.affects(&member.vm))
}

fn members(state: &State) -> impl Iterator<Item = (Member, &Workload)> {
    state.replicas.iter().flat_map(|(vm, replica)| {
        replica.workloads.iter().map(|workload| (Member { vm: vm.clone(), workload: workload.name.clone() }, workload))
    })
}

/// How far a step is at a time.
pub fn progress<'a>(event: &'a Event, step: &Step<'_>, now: Timestamp) -> Progress<'a> {
    if event.waivers.iter().any(|waiver| waiver.member == step.member && waiver.hook == step.id) {
        return Progress::Favourable;
    }
    let ends = event.time_ends(&step.member, step.id.phase);
    let out_of_time = ends.is_some_and(|ends| now >= ends);
    let Some(last) = event.attempts_of(&step.member, step.id).next_back() else {
        let from = if step.id.phase < Phase::Restore { event.first_seen() } else { event.over_at().unwrap_or(now) };
        return due(Intent::Run, from, None, out_of_time);
    };
    let Some((outcome, at)) = &last.outcome else {
        return Progress::Running(last);
    };
    let runs = event.attempts_of(&step.member, step.id).filter(|attempt| is_spent(attempt)).count();
    let failed = || {
        // What the end of the time for preparation cut short has not failed; what vanished before it has.
        let is_cut_short = ends.is_some_and(|ends| match outcome {
            Outcome::TimedOut(_) => last.deadline >= ends,
            Outcome::Unknown(_) => *at >= ends,
            Outcome::Done
            | Outcome::NotApplicable
            | Outcome::NotDone
            | Outcome::Failed(_)
            | Outcome::Blocked(_)
            | Outcome::Cancelled => false,
        });
        if is_cut_short {
            return Progress::OutOfTime;
        }
        Progress::Failed(outcome.reason().unwrap_or("it says that it is not done").into())
    };
    let again = || {
        if may_repeat(step, runs) { due(Intent::Run, at.plus(backoff(runs)), None, out_of_time) } else { failed() }
    };
    // A question without an answer leaves it as doubtful as it was.
    if last.intent == Intent::Confirm && !matches!(outcome, Outcome::Done | Outcome::NotApplicable | Outcome::NotDone) {
        let why = outcome.reason().map(String::from);
        return due(Intent::Confirm, at.plus(backoff(asked(event, step))), why, out_of_time);
    }
    match outcome {
        Outcome::Done | Outcome::NotApplicable => Progress::Favourable,
        Outcome::Blocked(reason) => due(Intent::Run, at.plus(BLOCKED_RETRY_AFTER), Some(reason.clone()), out_of_time),
        Outcome::Unknown(_) if step.hook.can_confirm => due(Intent::Confirm, *at, None, out_of_time),
        // A failover nobody can be asked about is never run again by itself.
        Outcome::Unknown(_) if step.id.phase == Phase::Failover => failed(),
        Outcome::NotDone | Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Unknown(_) => again(),
        Outcome::Cancelled => Progress::Failed("cancelled".into()),
    }
}

fn due<'a>(intent: Intent, from: Timestamp, blocked: Option<String>, out_of_time: bool) -> Progress<'a> {
    if out_of_time { Progress::OutOfTime } else { Progress::Due { intent, from, blocked } }
}

/// Attempts that count against the number a hook has.
fn is_spent(attempt: &Attempt) -> bool {
    attempt.intent == Intent::Run && !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))
}

/// How often in a row it was asked for lately.
fn asked(event: &Event, step: &Step<'_>) -> usize {
    event.attempts_of(&step.member, step.id).rev().take_while(|attempt| attempt.intent == Intent::Confirm).count()
}

/// `Ready` is asked until it holds.
fn may_repeat(step: &Step<'_>, runs: usize) -> bool {
    step.id.phase == Phase::Ready || runs < usize::try_from(step.hook.attempts).unwrap_or(usize::MAX)
}

fn backoff(runs: usize) -> Duration {
    let doublings = u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX).min(5);
    (RETRY_AFTER * (1 << doublings)).min(RETRY_AFTER_AT_MOST)
}

/// A `done` that is too old to be relied on.
pub fn is_stale(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    let (Some(fresh_for), true) = (step.hook.fresh_for, step.hook.can_confirm) else {
        return false;
    };
    event
        .attempts_of(&step.member, step.id)
        .next_back()
        .is_some_and(|last| matches!(&last.outcome, Some((Outcome::Done, at)) if now.since(*at) > fresh_for))
}

/// The step no longer stands in the way of those behind it.
pub fn lets_pass(event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    match progress(event, step, now) {
        Progress::Favourable => true,
        Progress::Failed(_) => step.hook.on_failure == OnFailure::Continue,
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
        Stage::Announced | Stage::Preparing if now < event.preparation_starts() || event.is_taken_over() => Vec::new(),
        Stage::Announced | Stage::Preparing => next_preparing(state, event, now),
        Stage::Started if event.entered_at(Stage::Started) == Some(event.first_seen()) => {
            next_preparing(state, event, now)
        }
        // A document that lists it again is waited out: nothing is put back on a VM that may be about to go.
        Stage::Restoring if state.is_listed(&event.announcement.id) => Vec::new(),
        Stage::Restoring => next_of(event, &restoring(state, event), now, |step| {
            // What still runs for the same workload is stopped first.
            !drill::is_wanted_away(state, event, &step.member, now)
                && !event.attempts.iter().any(|attempt| {
                    attempt.member == step.member && attempt.hook.phase < Phase::Restore && attempt.outcome.is_none()
                })
        }),
        Stage::Claimed | Stage::Approved | Stage::Started | Stage::Closed => Vec::new(),
    }
}

fn next_preparing<'a>(state: &'a State, event: &Event, now: Timestamp) -> Vec<Next<'a>> {
    let steps = preparing(state, event);
    let waits_for = |step: &Step<'_>| -> Vec<WorkloadName> {
        state.workload(&step.member).map(|workload| workload.after.clone()).unwrap_or_default()
    };
    let mut found = next_of(event, &steps, now, |step| {
        let after = waits_for(step);
        !drill::is_busy_with(state, event, &step.member)
            && steps
                .iter()
                .filter(|other| after.contains(&other.member.workload))
                .all(|other| lets_pass(event, other, now))
    });
    if now < event.preparation_ends() && steps.iter().all(|step| lets_pass(event, step, now)) {
        let doubtful = steps.into_iter().filter(|step| is_stale(event, step, now));
        found.extend(doubtful.map(|step| Next { step, intent: Intent::Confirm }));
    }
    found
}

/// The first step of each workload that is due, provided those before it let it pass and `gate` opens.
fn next_of<'a>(event: &Event, steps: &[Step<'a>], now: Timestamp, gate: impl Fn(&Step<'a>) -> bool) -> Vec<Next<'a>> {
    let mut found: Vec<Next<'a>> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let Progress::Due { intent, from, .. } = progress(event, step, now) else {
            continue;
        };
        let mut before = steps[..place].iter().filter(|other| other.member == step.member);
        if now >= from && before.all(|other| lets_pass(event, other, now)) && gate(step) {
            found.push(Next { step: step.clone(), intent });
        }
    }
    found
}

/// Nothing more can be done to put the workloads back.
pub fn is_restored(state: &State, event: &Event, now: Timestamp) -> bool {
    let steps = restoring(state, event);
    let given_up = |place: usize, step: &Step<'_>| {
        steps[..place].iter().any(|before| {
            before.member == step.member
                && matches!(progress(event, before, now), Progress::Failed(_) | Progress::OutOfTime)
                && !lets_pass(event, before, now)
        })
    };
    event.attempts.iter().all(|attempt| attempt.outcome.is_some())
        && steps.iter().enumerate().all(|(place, step)| match progress(event, step, now) {
            Progress::Favourable | Progress::Failed(_) | Progress::OutOfTime => true,
            Progress::Due { .. } => given_up(place, step),
            Progress::Running(_) => false,
        })
}

/// An open attempt is still to be run; otherwise it is cancelled.
pub fn is_wanted(event: &Event, attempt: &Attempt) -> bool {
    match event.stage() {
        Stage::Announced | Stage::Preparing | Stage::Claimed | Stage::Approved => true,
        // A failover that is under way may finish: stopped half way it would leave the group without a primary.
        Stage::Started => attempt.hook.phase == Phase::Failover,
        Stage::Restoring | Stage::Closed => attempt.hook.phase >= Phase::Restore,
    }
}
