//! Whether an event may be claimed, or the event's blocker (`SPEC.md` 6.1 and 12). `plan`, `apply` and `explain` share
//! this answer.

use crate::model::attempt::{Attempt, Outcome};
use crate::model::blocker::{Blocker, Clearance};
use crate::model::claim::Reason;
use crate::model::document::Status;
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use crate::model::workload::{Phase, RunsOn};
use crate::schedule::claims::NOT_REPEATED_IN_THE_LAST;
use crate::schedule::constraints;
use crate::schedule::failure::{blocker_before_last_call, holding_failure_among, hook_failed};
use crate::schedule::required;
use crate::schedule::slot_taking;
use crate::schedule::slots;
use crate::schedule::slots::SlotDeferred;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;

/// The clearance of an event: a blocker, or the reason for which the event may be claimed.
pub fn clearance(state: &State, event: &Event, now: Timestamp) -> Clearance {
    match state.observed_status(&event.announcement.id) {
        Some(Status::Scheduled) => clearance_of_scheduled(state, event, now),
        _ => Clearance::NothingToApprove,
    }
}

/// As `clearance`, by the last known status of an event while no document counts. For people, who look first.
pub fn clearance_as_last_listed(state: &State, event: &Event, now: Timestamp) -> Clearance {
    match state.observed_status(&event.announcement.id) {
        None if event.is_scheduled() => clearance_of_scheduled(state, event, now),
        _ => clearance(state, event, now),
    }
}

fn clearance_of_scheduled(state: &State, event: &Event, now: Timestamp) -> Clearance {
    let ready = clearance_without_slots(state, event, now);
    // A decision without a quorum, or an approval, is repeated regardless of members out of service meanwhile.
    if !matches!(ready, Clearance::Clear(_)) || event.has_isolated_approval() || event.stage() == Stage::Approved {
        return ready;
    }
    if event.slots_since.is_none() {
        let held = slot_taking::slots_denied_by(state, event, now);
        return Clearance::Blocked(held.map_or(Blocker::Deciding, |held| on_budget(event, held)));
    }
    slots::deferral_while_out(state, event).map_or(ready, |held| Clearance::Blocked(on_budget(event, held)))
}

fn on_budget(event: &Event, SlotDeferred { group, by }: SlotDeferred) -> Blocker {
    Blocker::Budget { group, by, notice_ends: event.notice_ends() }
}

/// The clearance of a scheduled event, apart from slots.
fn clearance_without_slots(state: &State, event: &Event, now: Timestamp) -> Clearance {
    if event.is_drill() || event.stage() > Stage::Approved {
        return Clearance::NothingToApprove;
    }
    if event.stage() == Stage::Approved {
        let is_late = now.plus(NOT_REPEATED_IN_THE_LAST) >= event.notice_ends();
        let is_due = event.next_claim_from().is_some_and(|at| now >= at);
        // A member that came back may start because of the event, so the member is prepared first.
        let is_busy = || event.attempts.iter().any(|attempt| attempt.outcome.is_none());
        let is_ready = || {
            !event.is_reopened()
                || (!is_busy() && matches!(clearance_of_preparation(state, event, now), Clearance::Clear(_)))
        };
        let is_let = is_due && !is_late && state.pause(now).is_none();
        let again = event.reason_to_repeat().filter(|_| is_let && is_ready());
        return again.map_or(Clearance::NothingToApprove, Clearance::Clear);
    }
    // A decision stays once the platform may have received the approval.
    if let Some(reason) = event.reason_to_repeat() {
        return Clearance::Clear(reason);
    }
    if event.has_isolated_approval() {
        return Clearance::Clear(Reason::IsolatedApproval);
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
    if treatment.action == Action::Prepare && !is_overruled {
        return clearance_of_preparation(state, event, now);
    }
    // A failover stopped half way would leave no primary in the group until the event is over.
    let is_failover = |attempt: &&Attempt| attempt.outcome.is_none() && attempt.hook.phase == Phase::Failover;
    if let Some(failover) = event.attempts.iter().find(is_failover) {
        return Clearance::Blocked(hook_running_blocker(event, failover));
    }
    Clearance::Clear(if is_overruled { Reason::Operator } else { Reason::Policy })
}

pub(crate) fn clearance_of_preparation(state: &State, event: &Event, now: Timestamp) -> Clearance {
    let steps = required::required_steps(state, event);
    if steps.is_empty() {
        return Clearance::Clear(Reason::NothingToPrepare);
    }
    if now < event.preparation_starts() {
        let missed = event.treatment.as_ref().and_then(|treatment| treatment.missed);
        return Clearance::Blocked(Blocker::TooEarly { starts_at: event.preparation_starts(), missed });
    }
    // A permanently failed hook holds the event, also when the budget is exhausted.
    if let Some(failed) = holding_failure_among(event, &steps, now) {
        return Clearance::Blocked(failed);
    }
    // No hook runs before the last call, so a hook of the earlier stints is the reason, and not a retry.
    if slots::waits_for_last_call(event)
        && let Some(blocker) = blocker_before_last_call(state, event, &steps, now)
    {
        return Clearance::Blocked(blocker);
    }
    if event.budget_ends().is_some_and(|ends| now >= ends) {
        // No hook of these members runs when the approval is posted, also for another event.
        let of_these = |(_, attempt): &(&Event, &Attempt)| {
            attempt.hook.phase < Phase::Restore && steps.iter().any(|step| step.member == attempt.member)
        };
        return constraints::running(state).find(of_these).map_or(Clearance::Clear(Reason::BudgetSpent), |(of, it)| {
            Clearance::Blocked(hook_running_blocker(of, it))
        });
    }
    // No disruptive hook begins before the event has slots.
    if event.slots_since.is_none()
        && let Some(held) = slot_taking::slots_denied_by(state, event, now)
    {
        return Clearance::Blocked(on_budget(event, held));
    }
    if let Some(reason) = reason_to_wait(state, event, &steps, now) {
        return Clearance::Blocked(reason);
    }
    match steps.iter().find(|step| step_state::is_stale(step, now)) {
        Some(step) => {
            Clearance::Blocked(Blocker::HookWaiting { member: step.member.clone(), hook: step.id, from: now })
        }
        None => Clearance::Clear(Reason::Prepared),
    }
}

/// The blocker of the first open step; a step in `HookWaiting` waits for another workload's step.
fn reason_to_wait(state: &State, event: &Event, steps: &[Step<'_>], now: Timestamp) -> Option<Blocker> {
    let (mut first, mut member) = (None, None);
    for step in steps {
        // The steps of one workload are adjacent, and the later steps of the workload wait for the first.
        if member == Some(&step.member) {
            continue;
        }
        match blocker_of_step(state, event, step, now) {
            None => continue,
            Some(waiting @ Blocker::HookWaiting { .. }) => first = first.or(Some(waiting)),
            reason => return reason,
        }
        member = Some(&step.member);
    }
    first
}

pub(crate) fn blocker_of_step(state: &State, event: &Event, step: &Step<'_>, now: Timestamp) -> Option<Blocker> {
    let (member, hook) = (step.member.clone(), step.id);
    match step_state::step_state(event, step, now) {
        StepState::Satisfied | StepState::Failed(_) => None,
        StepState::Running(attempt) => {
            // Nothing runs before the workload connects again, as long as the hook is asked for its outcome.
            let away = state.away_since(&member).filter(|_| attempt.on == member.vm && state.is_absent(&member));
            Some(match away {
                Some(since) => Blocker::WorkloadAway { member, hook, since, notice_ends: event.notice_ends() },
                None => hook_running_blocker(event, attempt),
            })
        }
        StepState::Due { .. } if step.when_disconnected.is_some() && step.hook.runs_on != RunsOn::Peer => {
            let since = state.away_since(&member).unwrap_or(event.first_seen());
            Some(Blocker::WorkloadAway { member, hook, since, notice_ends: event.notice_ends() })
        }
        StepState::Due { blocked, from, .. } => {
            let mut elsewhere = constraints::running(state);
            if let Some((other, attempt)) = elsewhere.find(|(_, attempt)| attempt.member == member) {
                return Some(hook_running_blocker(other, attempt));
            }
            let is_let = !step.id.phase.is_disruptive() || step_state::is_half_done(step);
            let is_barred = !is_let && event.slots_since.is_some();
            let held = slots::deferral_while_out(state, event).filter(|_| is_barred).map(|held| on_budget(event, held));
            held.or(Some(match blocked {
                Some(reason) => Blocker::HookBlocked { member, hook, reason, retry_at: from },
                None => Blocker::HookWaiting { member, hook, from },
            }))
        }
        StepState::OutOfTime => {
            // An event with a budget is approved without the hook in a moment.
            let last = step.forward().next_back().map(|last| last.outcome.as_ref());
            if let Some(ends) = event.approved_without_hooks_at() {
                return Some(match last {
                    Some(Some((Outcome::Blocked(reason), _))) => {
                        Blocker::HookBlocked { member, hook, reason: reason.clone(), retry_at: ends }
                    }
                    _ => Blocker::HookWaiting { member, hook, from: ends },
                });
            }
            let Some(last) = last else {
                return Some(Blocker::HookNotRun { member, hook, notice_ends: event.notice_ends() });
            };
            let reason = last.and_then(|(outcome, _)| outcome.reason());
            Some(hook_failed(
                event,
                step,
                reason.unwrap_or("the hook had not completed when the time for preparation ended"),
            ))
        }
    }
}

fn hook_running_blocker(event: &Event, attempt: &Attempt) -> Blocker {
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
