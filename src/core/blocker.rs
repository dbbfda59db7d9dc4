//! Why an event is not approved yet (`behaviour.md` 12): one answer, used to decide and to explain.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::attempt::Attempt;
use super::claim::{PostOutcome, Reason};
use super::document::Status;
use super::event::Event;
use super::id::{AttemptId, GroupName, VmName};
use super::lifecycle::Stage;
use super::operator::Halt;
use super::order;
use super::policy::Action;
use super::slot::Cause;
use super::slots::{self, Held};
use super::state::State;
use super::steps::{self, Progress, Step};
use super::takeover::Outlook;
use super::time::Timestamp;
use super::workload::{HookId, Member, OnFailure, Phase, RunsOn};

/// An accepted approval is not posted once more in the last minute of the notice: the event starts anyway.
const NOT_REPEATED_IN_THE_LAST: Duration = Duration::from_mins(1);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocker {
    Deciding,
    Observing,
    TooEarly {
        starts_at: Timestamp,
    },
    HookWaiting {
        member: Member,
        hook: HookId,
        from: Timestamp,
    },
    /// No replica that could run it answers.
    ReplicaAway {
        member: Member,
        hook: HookId,
        /// Since when the workload's own is out of reach; `None` where it answers, and another is to run the hook.
        since: Option<Timestamp>,
        /// From when on it is not waited for, because somebody asked for the event.
        passed_over_at: Option<Timestamp>,
    },
    /// The replica of one of its VMs has yet to say what runs there.
    Unregistered {
        replica: VmName,
        /// From when on it is not waited for, because the budget is spent or somebody asked for the event.
        passed_over_at: Option<Timestamp>,
    },
    HookRunning {
        attempt: AttemptId,
        member: Member,
        hook: HookId,
        on: VmName,
        since: Timestamp,
        deadline: Timestamp,
        expected_end: Option<Timestamp>,
    },
    HookBlocked {
        member: Member,
        hook: HookId,
        reason: String,
        retry_at: Timestamp,
    },
    /// Its workload dials in and is away.
    WorkloadAway {
        member: Member,
        hook: HookId,
        since: Timestamp,
        notice_ends: Timestamp,
    },
    HookFailed {
        member: Member,
        hook: HookId,
        reason: String,
        notice_ends: Timestamp,
    },
    /// With its members too many of the group would be out at once.
    Budget {
        /// `None` where a member without a group waits for its own restore.
        group: Option<GroupName>,
        by: Vec<Cause>,
        /// What the end of the notice starts cannot be held.
        notice_ends: Timestamp,
    },
    /// An operator does not want it to be approved yet.
    Hold(Halt),
    /// An operator wants nothing to be approved yet.
    Paused(Halt),
    NoHealthyChannel,
    NoQuorum {
        /// Whether and when this replica approves it alone; `None` where it has no say.
        takeover: Option<Outlook>,
    },
    Posting {
        approver: VmName,
        since: Timestamp,
        /// From when on another may be named.
        until: Timestamp,
    },
    /// The last post was not accepted; another is made.
    PostFailed {
        approver: VmName,
        outcome: PostOutcome,
        at: Timestamp,
        again_at: Timestamp,
    },
    WaitingForPlatform {
        since: Timestamp,
    },
}

impl Blocker {
    /// The hook that the event waits for, as operators call it.
    pub fn hook(&self, state: &State) -> Option<String> {
        match self {
            Self::HookWaiting { member, hook, .. }
            | Self::ReplicaAway { member, hook, .. }
            | Self::HookRunning { member, hook, .. }
            | Self::HookBlocked { member, hook, .. }
            | Self::WorkloadAway { member, hook, .. }
            | Self::HookFailed { member, hook, .. } => Some(state.hook_name(member, *hook)),
            _ => None,
        }
    }

    /// The word of `contract.md` 4.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Deciding => "deciding",
            Self::Observing => "observing",
            Self::TooEarly { .. } => "too_early",
            Self::HookWaiting { .. } | Self::ReplicaAway { .. } | Self::Unregistered { .. } => "hook_waiting",
            Self::HookRunning { .. } => "hook_running",
            Self::HookBlocked { .. } | Self::WorkloadAway { .. } => "hook_blocked",
            Self::HookFailed { .. } => "hook_failed",
            Self::Budget { .. } => "budget",
            Self::Hold(_) => "hold",
            Self::Paused(_) => "paused",
            Self::NoHealthyChannel => "no_healthy_channel",
            Self::NoQuorum { .. } => "no_quorum",
            Self::Posting { .. } => "posting",
            Self::PostFailed { outcome: PostOutcome::Differs, .. } => "views_differ",
            Self::PostFailed { .. } => "post_failed",
            Self::WaitingForPlatform { .. } => "waiting_for_platform",
        }
    }
}

/// Whether an event may be claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clearance {
    /// It has started, is over or is not Scheduled.
    NothingToApprove,
    Blocked(Blocker),
    Clear(Reason),
}

/// What stands between an event and its claim.
pub fn clearance(state: &State, event: &Event, now: Timestamp) -> Clearance {
    let ready = readiness(state, event, now);
    // What was decided without a quorum, or is approved, is repeated whoever is out meanwhile.
    if !matches!(ready, Clearance::Clear(_)) || event.is_taken_over() || event.stage() == Stage::Approved {
        return ready;
    }
    if event.slots_since.is_none() {
        let held = slots::barred_from_taking(state, event, now);
        return Clearance::Blocked(held.map_or(Blocker::Deciding, |held| on_budget(event, held)));
    }
    slots::barred(state, event).map_or(ready, |held| Clearance::Blocked(on_budget(event, held)))
}

fn on_budget(event: &Event, Held { group, by }: Held) -> Blocker {
    Blocker::Budget { group, by, notice_ends: event.notice_ends() }
}

/// What stands between an event and its claim, apart from slots.
fn readiness(state: &State, event: &Event, now: Timestamp) -> Clearance {
    if event.is_drill()
        || event.stage() > Stage::Approved
        || state.observed_status(&event.announcement.id) != Some(&Status::Scheduled)
    {
        return Clearance::NothingToApprove;
    }
    if event.stage() == Stage::Approved {
        let is_late = now.plus(NOT_REPEATED_IN_THE_LAST) >= event.notice_ends();
        let is_due = event.claimed_again_from().is_some_and(|at| now >= at);
        // What came back may start because of it, so it is prepared first.
        let is_busy = || event.attempts.iter().any(|attempt| attempt.outcome.is_none());
        let is_ready =
            || !event.is_reopened() || (!is_busy() && matches!(prepared(state, event, now), Clearance::Clear(_)));
        let is_let = is_due && !is_late && state.pause(now).is_none();
        let again = event.reason_to_repeat().filter(|_| is_let && is_ready());
        return again.map_or(Clearance::NothingToApprove, Clearance::Clear);
    }
    // What the platform may have been told stays decided.
    if let Some(reason) = event.reason_to_repeat() {
        return Clearance::Clear(reason);
    }
    if event.is_taken_over() {
        return Clearance::Clear(Reason::Takeover);
    }
    let Some(treatment) = &event.treatment else {
        return Clearance::Blocked(Blocker::Deciding);
    };
    if let Some(hold) = event.hold(now) {
        return Clearance::Blocked(Blocker::Hold(hold));
    }
    let is_overruled = event.is_approved_by_operator();
    if treatment.action == Action::Observe && !is_overruled {
        return Clearance::Blocked(Blocker::Observing);
    }
    if let Some(pause) = state.pause(now) {
        return Clearance::Blocked(Blocker::Paused(pause));
    }
    match treatment.action {
        _ if is_overruled => Clearance::Clear(Reason::Operator),
        Action::Observe => Clearance::Blocked(Blocker::Observing),
        Action::Approve => Clearance::Clear(Reason::Policy),
        Action::Prepare => prepared(state, event, now),
    }
}

pub(super) fn prepared(state: &State, event: &Event, now: Timestamp) -> Clearance {
    let steps = steps::preparing(state, event);
    if steps.is_empty() {
        return Clearance::Clear(Reason::NothingToPrepare);
    }
    if now < event.preparation_starts() {
        return Clearance::Blocked(Blocker::TooEarly { starts_at: event.preparation_starts() });
    }
    // A hook that failed for good holds the event, also when its budget is spent.
    if let Some(failed) = failed_among(event, &steps, now) {
        return Clearance::Blocked(failed);
    }
    if event.budget_ends().is_some_and(|ends| now >= ends) {
        // Nothing of ours runs when the approval is posted.
        let mut running = event.attempts.iter().filter(|attempt| attempt.outcome.is_none());
        let last = running.find(|attempt| attempt.hook.phase < Phase::Restore);
        return last.map_or(Clearance::Clear(Reason::BudgetSpent), |attempt| {
            Clearance::Blocked(self::running(event, attempt))
        });
    }
    // Before it has its slots nothing that takes service away begins.
    if event.slots_since.is_none()
        && let Some(held) = slots::barred_from_taking(state, event, now)
    {
        return Clearance::Blocked(on_budget(event, held));
    }
    if let Some(reason) = reason_to_wait(state, event, &steps, now) {
        return Clearance::Blocked(reason);
    }
    match steps.iter().find(|step| steps::is_stale(step, now)) {
        Some(step) => {
            Clearance::Blocked(Blocker::HookWaiting { member: step.member.clone(), hook: step.id, from: now })
        }
        None => Clearance::Clear(Reason::Prepared),
    }
}

/// What the first step that is not settled waits for; one that waits for its turn waits for another workload's.
fn reason_to_wait(state: &State, event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let (mut first, mut member) = (None, None);
    for step in steps {
        // Those of one workload stand together, and the others of it wait for the first.
        if member == Some(&step.member) {
            continue;
        }
        match unsettled(state, event, step, now) {
            None => continue,
            Some(waiting @ Blocker::HookWaiting { .. }) => first = first.or(Some(waiting)),
            reason => return reason,
        }
        member = Some(&step.member);
    }
    first
}

/// The hook that failed as often as it may and holds the event, also while it is taken back.
pub fn failed_for_good(state: &State, event: &Event, now: Timestamp) -> Option<Blocker> {
    failed_among(event, &steps::preparing(state, event), now)
}

pub(super) fn failed_among(event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let held_by = |step: &Step<'_>| match steps::forward(event, step, now) {
        Progress::Failed(reason) if step.on_failure == OnFailure::Hold => Some(hook_failed(event, step, &reason)),
        _ => None,
    };
    steps.iter().find_map(held_by)
}

pub(super) fn hook_failed(event: &Event, step: &Step<'_>, reason: &str) -> Blocker {
    let (member, hook) = (step.member.clone(), step.id);
    Blocker::HookFailed { member, hook, reason: reason.into(), notice_ends: event.notice_ends() }
}

pub(super) fn unsettled(state: &State, event: &Event, step: &Step<'_>, now: Timestamp) -> Option<Blocker> {
    let (member, hook) = (step.member.clone(), step.id);
    match steps::progress(event, step, now) {
        Progress::Favourable | Progress::Failed(_) => None,
        Progress::Running(attempt) => Some(running(event, attempt)),
        Progress::Due { .. } if step.away.is_some() && step.hook.runs_on != RunsOn::Peer => {
            let since = state.away_since(&member).unwrap_or(event.first_seen());
            Some(Blocker::WorkloadAway { member, hook, since, notice_ends: event.notice_ends() })
        }
        Progress::Due { blocked, from, .. } => {
            let mut elsewhere = order::running(state);
            if let Some((other, attempt)) = elsewhere.find(|(_, attempt)| attempt.member == member) {
                return Some(running(other, attempt));
            }
            let is_barred = step.id.phase.is_disruptive() && event.slots_since.is_some();
            let held = slots::barred(state, event).filter(|_| is_barred).map(|held| on_budget(event, held));
            held.or(Some(match blocked {
                Some(reason) => Blocker::HookBlocked { member, hook, reason, retry_at: from },
                None => Blocker::HookWaiting { member, hook, from },
            }))
        }
        Progress::OutOfTime => {
            let last = step.forward().next_back().and_then(|last| last.outcome.as_ref());
            let reason = last.and_then(|(outcome, _)| outcome.reason());
            Some(hook_failed(event, step, reason.unwrap_or("it was not settled when the time for preparation was up")))
        }
    }
}

fn running(event: &Event, attempt: &Attempt) -> Blocker {
    Blocker::HookRunning {
        attempt: attempt.id,
        member: attempt.member.clone(),
        hook: attempt.hook,
        on: attempt.on.clone(),
        since: attempt.begun_at,
        deadline: event.deadline_of(attempt),
        expected_end: attempt.progress.as_ref().and_then(|progress| progress.expected_end),
    }
}
