//! The commands that the leader proposes next. `plan` computes the commands anew whenever the state or the time
//! changes. Nothing is queued, so a crash loses nothing, and `apply` ignores an outdated proposal.

mod contact;
pub mod decommission;
pub mod drill;
pub mod placement;
pub mod registration;
mod treatment;
pub mod version;

use crate::model::attempt::{ENDED_WITHIN, Outcome, WaiverReason};
use crate::model::blocker::Clearance;
use crate::model::command::{
    AbandonRestores, BeginAttempt, BeginLastCall, BeginLeadership, ChooseTreatment, ClaimApproval, Command,
    ExpireAttempt, ForgetEvent, GiveBackSlots, TakeSlots, WaiveHook,
};
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::workload::{Intent, Phase, RunsOn};
use crate::plan::placement::{replica_for_step, unreachable_replica_given_up_at};
use crate::plan::registration::unregistered_blocker;
use crate::planning_input::PlanningInput;
use crate::schedule::affected_members::stints_of;
use crate::schedule::claims::CLAIM_AGAIN_AFTER_AT_MOST;
use crate::schedule::clearance::clearance;
use crate::schedule::last_call;
use crate::schedule::next_steps;
use crate::schedule::required;
use crate::schedule::slot_queue;
use crate::schedule::slot_taking;
use crate::schedule::slots;
use crate::schedule::step::{Next, Step};
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;
use alloc::vec::Vec;
use core::time::Duration;

/// An approver's last attempt to read a document and the answer of the control plane take this long at most.
const LAST_RESORT_TAKES: Duration = Duration::from_secs(25);

/// Pending commands, in the best order for proposals.
pub fn plan(state: &State, input: &PlanningInput) -> Vec<Command> {
    if let Some(beginning) = leadership_to_begin(state, input) {
        return alloc::vec![beginning];
    }
    let mut due = contact::replicas_to_suspect(state, input);
    due.extend(contact::stale_documents(state, input));
    due.extend(contact::reachability_changes(state, input));
    due.extend(decommission::replica_to_remove(state, input));
    due.extend(version::version_to_raise(state, input));
    due.extend(removed_to_forget(state, input));
    // Events announced together take slots in the order of their queue positions.
    let mut open: Vec<&Event> = state.open_events().collect();
    open.sort_by_cached_key(|event| slot_queue::queue_position(state, event, input.now));
    for event in open {
        if event.stage().is_over() {
            due.extend(overrun(event, input));
            due.extend(attempts_to_begin(state, event, input));
            continue;
        }
        if let Some(treatment) = treatment::treatment_to_choose(event, input) {
            due.push(Command::ChooseTreatment(ChooseTreatment { event: event.announcement.id.clone(), treatment }));
        }
        if event.treatment.is_none() || event.has_missed_window(input.now) {
            continue;
        }
        due.extend(overrun(event, input));
        due.extend(hooks_to_waive(state, event, input));
        due.extend(slots_to_change(state, event, input));
        due.extend(attempts_to_begin(state, event, input));
        due.extend(claim_to_make(state, event, input));
        due.extend(event_to_forget(state, event, input));
        due.extend(drill::finished_drill_to_end(state, event, input.now));
    }
    due
}

/// Replicas take claims from this leader only after the command is committed.
fn leadership_to_begin(state: &State, input: &PlanningInput) -> Option<Command> {
    let lead = input.leader.as_ref()?;
    let known = state.leadership.as_ref();
    let is_known =
        known.is_some_and(|known| known.by == input.me && (known.term, known.turn) == (lead.term, lead.turn));
    (!is_known).then(|| {
        Command::BeginLeadership(BeginLeadership { term: lead.term, turn: lead.turn, voters: lead.voters.clone() })
    })
}

/// Replicas whose workloads are to be restored but that are no longer members, so that no restore will run; and
/// replicas whose VM was deleted long ago.
fn removed_to_forget(state: &State, input: &PlanningInput) -> Vec<Command> {
    let is_removed = |vm: &VmName, slot: &Slot| match slot.state {
        SlotState::Returning => !input.members.contains(vm),
        SlotState::Gone => input.now.since(slot.since) >= input.timing.replace_after,
        SlotState::Leaving | SlotState::Out => false,
    };
    let owing = state.slots.iter().filter(|(member, slot)| is_removed(&member.vm, slot));
    let mut removed: Vec<&VmName> = owing.map(|(member, _)| &member.vm).collect();
    removed.dedup();
    removed.into_iter().map(|replica| Command::AbandonRestores(AbandonRestores { replica: replica.clone() })).collect()
}

/// Slots to take or to return for the event.
fn slots_to_change(state: &State, event: &Event, input: &PlanningInput) -> Option<Command> {
    let (id, now) = (|| event.announcement.id.clone(), input.now);
    if last_call::is_due(state, event, now) {
        return Some(Command::BeginLastCall(BeginLastCall { event: id() }));
    }
    // The log's view of the cloud may be old: the event may have started.
    if is_up_to_date(input) && slots::gives_back_now(state, event, now) {
        return Some(Command::GiveBackSlots(GiveBackSlots { event: id() }));
    }
    let takes = event.slots_since.is_none()
        && slots::is_ready_for_slots(state, event, now)
        && slot_taking::slots_denied_by(state, event, now).is_none();
    takes.then(|| Command::TakeSlots(TakeSlots { event: id() }))
}

/// Attempts whose replica has not reported an outcome in time.
fn overrun(event: &Event, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let late = event.attempts.iter().filter(|attempt| {
        // Replicas that were down together with the leader have yet to report the results of their hooks.
        let could_speak = event.deadline_of(attempt).max(input.leading_since);
        attempt.outcome.is_none() && input.now >= could_speak.plus(ENDED_WITHIN)
    });
    late.map(|attempt| {
        Command::ExpireAttempt(ExpireAttempt { event: event.announcement.id.clone(), attempt: attempt.id })
    })
}

/// A user reboots a machine because the machine hangs: its hooks are not waited for.
fn hooks_to_waive(state: &State, event: &Event, input: &PlanningInput) -> Vec<Command> {
    if !event.is_user_initiated() || event.stage() > Stage::Preparing {
        return Vec::new();
    }
    let lost = |name: &VmName| unreachable_replica_given_up_at(name, input).is_some_and(|from| input.now >= from);
    let waits = |step: &Step<'_>| match step_state::state_without_undo(event, step, input.now) {
        // Another VM can run the hook again after this attempt has expired.
        StepState::Running(attempt) => step.hook.runs_on == RunsOn::Affected && lost(&attempt.on),
        // A hook that only waits for a VM may still be run.
        StepState::Due { .. } => {
            replica_for_step(state, event, step, Intent::Confirm, input).is_none() && lost(&step.member.vm)
        }
        // The attempt vanished with its VM, and its deadline has passed meanwhile.
        StepState::Failed(_) => {
            let mut latest = step.forward().rev();
            let vanished = latest.next().is_some_and(|it| matches!(it.outcome, Some((Outcome::Unknown(_), _))));
            step.hook.runs_on == RunsOn::Affected && vanished && lost(&step.member.vm)
        }
        StepState::Satisfied | StepState::OutOfTime => false,
    };
    let steps = required::required_steps(state, event);
    let waived = steps.into_iter().filter(waits).map(|step| {
        Command::WaiveHook(WaiveHook {
            event: event.announcement.id.clone(),
            member: step.member,
            hook: step.id,
            why: WaiverReason::Unreachable,
        })
    });
    waived.collect()
}

fn attempts_to_begin(state: &State, event: &Event, input: &PlanningInput) -> Vec<Command> {
    // The log's view of the cloud may be old: an event shown as announced may already have taken the VM.
    let may_restore = event.stage().is_over() || event.is_drill() || is_up_to_date(input);
    let begin = |next: Next<'_>| {
        let brings_back = next.step.id.phase >= Phase::Restore || next.step.is_undo;
        if brings_back && !may_restore {
            return None;
        }
        let on = replica_for_step(state, event, &next.step, next.intent, input)?;
        let ends = if next.intent == Intent::Undo { None } else { event.latest_end_of_phase(next.step.id.phase) };
        let timeout = input.now.plus(next.step.hook.timeout);
        Some(Command::BeginAttempt(BeginAttempt {
            event: event.announcement.id.clone(),
            member: next.step.member,
            hook: next.step.id,
            intent: next.intent,
            on,
            deadline: ends.map_or(timeout, |ends| timeout.min(ends)),
        }))
    };
    next_steps::next_steps(state, event, input.now).into_iter().filter_map(begin).collect()
}

fn claim_to_make(state: &State, event: &Event, input: &PlanningInput) -> Option<Command> {
    let Clearance::Clear(reason) = clearance(state, event, input.now) else {
        return None;
    };
    if !may_claim_again(event, input) || state.is_suspect(&input.me) || state.is_pair_in_doubt() {
        return None;
    }
    if !event.is_user_initiated() && !is_up_to_date(input) {
        return None;
    }
    if unregistered_blocker(state, event, reason, input).is_some() {
        return None;
    }
    let (approver, is_last_resort) = input.approver_or_last_resort(state, event)?;
    let approver = approver.clone();
    let (decision, stints) = (event.decided_at_revision, stints_of(state, event));
    // The approver polls once more and posts, each perhaps behind another poll: a slow endpoint is not a dead endpoint.
    let answers_in = input.peers.get(&approver).map_or(Duration::ZERO, |contact| contact.answers_in);
    let takes = if is_last_resort { LAST_RESORT_TAKES } else { answers_in * 3 };
    let until = input.now.plus(input.timing.claim_lease + takes);
    Some(Command::ClaimApproval(ClaimApproval {
        event: event.announcement.id.clone(),
        approver,
        reason,
        decided_at_revision: decision,
        stints,
        until,
        is_last_resort,
    }))
}

/// Whether a replica has polled since this leader leads: after a loss of the leader the log's view of the cloud may be
/// old.
fn is_up_to_date(input: &PlanningInput) -> bool {
    input.peers.values().any(|contact| {
        let looked = |age| contact.reachable && input.now.minus(age) >= input.leading_since;
        contact.document_age.is_some_and(looked)
    })
}

fn may_claim_again(event: &Event, input: &PlanningInput) -> bool {
    let taken_over = event.isolated_approvals.iter().filter_map(|takeover| takeover.recorded).max();
    let after_takeover = taken_over.filter(|_| event.claims.is_empty()).map(|at| at.plus(CLAIM_AGAIN_AFTER_AT_MOST));
    after_takeover.or(event.next_claim_from()).is_none_or(|at| input.now >= at)
}

/// Every replica that saw the event has been silent for so long that no end of the event will be reported.
fn event_to_forget(state: &State, event: &Event, input: &PlanningInput) -> Option<Command> {
    let forgotten = event.seen_by.iter().all(|name| {
        // A replica whose VM was deleted is no longer registered, and reports nothing.
        let Some(replica) = state.replicas.get(name) else { return true };
        replica.stale_since.is_some_and(|since| input.now.since(since) >= input.timing.forget_after)
    });
    (forgotten && !event.is_drill()).then(|| Command::ForgetEvent(ForgetEvent { event: event.announcement.id.clone() }))
}
