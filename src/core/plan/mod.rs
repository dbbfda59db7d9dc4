//! The commands that the leader proposes next. `plan` computes them anew whenever the state or the time changes.
//! Nothing is queued, so a crash loses nothing, and `apply` ignores a proposal that is no longer right.

pub mod decommission;
pub mod drill;
pub mod placement;
pub mod registration;
pub mod version;

use crate::model::attempt::{ENDED_WITHIN, Outcome, WaiverReason};
use crate::model::blocker::Clearance;
use crate::model::command::{
    AbandonRestores, BeginAttempt, BeginLastCall, BeginLeadership, ChooseTreatment, ClaimApproval, Command,
    ExpireAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, RecordReachability, SuspectReplica, TakeSlots,
    WaiveHook,
};
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::treatment::Treatment;
use crate::model::workload::{Intent, Phase, RunsOn};
use crate::plan::placement::{replica_for_step, unreachable_replica_given_up_at};
use crate::plan::registration::unregistered_blocker;
use crate::planning_input::PlanningInput;
use crate::policy;
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

/// The commands that are due, in the order in which they are best proposed.
pub fn plan(state: &State, input: &PlanningInput) -> Vec<Command> {
    if let Some(beginning) = leadership_to_begin(state, input) {
        return alloc::vec![beginning];
    }
    let mut due = replicas_to_suspect(state, input);
    due.extend(stale_documents(state, input));
    due.extend(reachability_changes(state, input));
    due.extend(decommission::replica_to_remove(state, input));
    due.extend(version::version_to_raise(state, input));
    due.extend(removed_to_forget(state, input));
    // What is announced together takes its slots in the order in which they are given.
    let mut open: Vec<&Event> = state.open_events().collect();
    open.sort_by_cached_key(|event| slot_queue::queue_position(state, event, input.now));
    for event in open {
        if event.stage().is_over() {
            due.extend(overrun(event, input));
            due.extend(attempts_to_begin(state, event, input));
            continue;
        }
        if event.treatment.is_none() {
            // What nobody can tell is observed (D6).
            if !event.is_drill() && !event.announcement.status.is_known() {
                continue;
            }
            let chosen = policy::treatment_of(&input.policy, &event.announcement, &input.members, input.now);
            // Whoever asks for a drill wants it now.
            let ahead = chosen.ahead.filter(|_| !event.is_drill());
            let treatment = Treatment { ahead, ..chosen };
            due.push(Command::ChooseTreatment(ChooseTreatment { event: event.announcement.id.clone(), treatment }));
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

/// Until it is committed nobody takes a claim from this leader.
fn leadership_to_begin(state: &State, input: &PlanningInput) -> Option<Command> {
    let lead = input.leader.as_ref()?;
    let known = state.leadership.as_ref();
    let is_known =
        known.is_some_and(|known| known.by == input.me && (known.term, known.turn) == (lead.term, lead.turn));
    (!is_known).then(|| {
        Command::BeginLeadership(BeginLeadership { term: lead.term, turn: lead.turn, voters: lead.voters.clone() })
    })
}

/// Once for every loss of contact, early enough that it is committed before the voter acts alone.
fn replicas_to_suspect(state: &State, input: &PlanningInput) -> Vec<Command> {
    let Some(lead) = &input.leader else {
        return Vec::new();
    };
    let half = input.timing.takeover_after / 2;
    let number_to_start = |voter: &VmName| {
        let heard = lead.acknowledged.get(voter).copied().unwrap_or(input.leading_since);
        let known = state.reconcile_states.get(voter);
        let has_its_number = known.is_some_and(|known| known.since > heard);
        let is_silent = input.now.since(heard) >= half;
        (is_silent && !has_its_number).then(|| known.map_or(0, |known| known.number) + 1)
    };
    let others = lead.voters.iter().filter(|voter| **voter != input.me);
    let suspect = |voter: &VmName| {
        Some(Command::SuspectReplica(SuspectReplica { number: number_to_start(voter)?, replica: voter.clone() }))
    };
    // Nobody counts the silence of one that was removed, and it may not know.
    let removed = state
        .reconcile_states
        .iter()
        .filter(|(name, known)| known.is_reconciled && !lead.voters.contains(name) && !input.learners.contains(name));
    let removed = removed.map(|(name, known)| {
        Command::SuspectReplica(SuspectReplica { number: known.number + 1, replica: name.clone() })
    });
    others.filter_map(suspect).chain(removed).collect()
}

/// What the replicas that say nothing said last no longer counts after a while, as far as it matters to an event.
fn stale_documents(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    // One that was removed tells nobody anything any more.
    let too_long = |name: &VmName| {
        let silent = input.without_news_for(name).is_some_and(|silence| silence >= input.timing.stale_after);
        silent || !input.members.contains(name)
    };
    let matters = |name: &VmName| state.open_events().any(|event| event.seen_by.contains(name));
    let silent = state.replicas.iter().filter(move |(name, replica)| {
        replica.document.is_some() && replica.stale_since.is_none() && too_long(name) && matters(name)
    });
    silent.map(|(name, _)| Command::MarkDocumentStale(MarkDocumentStale { replica: name.clone() }))
}

/// Who is out of reach for so long that it counts as out of service, and who is back.
fn reachability_changes(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let half = input.timing.takeover_after / 2;
    state.replicas.iter().filter_map(move |(name, replica)| {
        // Who was removed is missed by nobody.
        let is_member = input.members.contains(name);
        let is_silent = || input.unreachable_for(name).is_some_and(|silence| silence >= half);
        let reachable = match replica.unreachable {
            None if is_member && is_silent() => false,
            Some(_) if !is_member || input.reaches(name) => true,
            None | Some(_) => return None,
        };
        Some(Command::RecordReachability(RecordReachability { replica: name.clone(), reachable }))
    })
}

/// Replicas that are no members any more, and whose workloads are to be restored: nobody does that. And those whose VM
/// was deleted long ago.
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

/// Slots that the event takes or gives back.
fn slots_to_change(state: &State, event: &Event, input: &PlanningInput) -> Option<Command> {
    let (id, now) = (|| event.announcement.id.clone(), input.now);
    if last_call::is_due(state, event, now) {
        return Some(Command::BeginLastCall(BeginLastCall { event: id() }));
    }
    // What the log says of the cloud may be old: it may have started.
    let gives_back = || is_up_to_date(input) && slots::gives_back_at(state, event).is_some_and(|at| now >= at);
    if gives_back() && slots::is_stuck(state, event, now) {
        return Some(Command::GiveBackSlots(GiveBackSlots { event: id() }));
    }
    let takes = event.slots_since.is_none()
        && slots::is_ready_for_slots(state, event, now)
        && slot_taking::slots_denied_by(state, event, now).is_none();
    takes.then(|| Command::TakeSlots(TakeSlots { event: id() }))
}

/// Attempts whose replica has not said in time how they ended.
fn overrun(event: &Event, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let late = event.attempts.iter().filter(|attempt| {
        // Replicas that were down together with the leader have yet to say what their hooks left behind.
        let could_speak = event.deadline_of(attempt).max(input.leading_since);
        attempt.outcome.is_none() && input.now >= could_speak.plus(ENDED_WITHIN)
    });
    late.map(|attempt| {
        Command::ExpireAttempt(ExpireAttempt { event: event.announcement.id.clone(), attempt: attempt.id })
    })
}

/// The machine hangs, which is why somebody reboots it: its hooks are not waited for.
fn hooks_to_waive(state: &State, event: &Event, input: &PlanningInput) -> Vec<Command> {
    if !event.is_user_initiated() || event.stage() > Stage::Preparing {
        return Vec::new();
    }
    let lost = |name: &VmName| unreachable_replica_given_up_at(name, input).is_some_and(|from| input.now >= from);
    let waits = |step: &Step<'_>| match step_state::state_without_undo(event, step, input.now) {
        // Elsewhere it can be run once more when this attempt has expired.
        StepState::Running(attempt) => step.hook.runs_on == RunsOn::Affected && lost(&attempt.on),
        // One that only waits for a place may yet be run.
        StepState::Due { .. } => {
            replica_for_step(state, event, step, Intent::Confirm, input).is_none() && lost(&step.member.vm)
        }
        // It vanished with its VM and its deadline has passed meanwhile.
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
    // What the log says of the cloud may be old: what it takes for announced may have taken the VM.
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
    let approver = input.approver(state, &event.announcement.id)?.clone();
    let (decision, stints) = (event.decided_at_revision, stints_of(state, event));
    // The approver looks once more and posts, each perhaps behind a poll: a slow endpoint is not a dead one.
    let answers_in = input.peers.get(&approver).map_or(Duration::ZERO, |contact| contact.answers_in);
    let until = input.now.plus(input.timing.claim_lease + answers_in * 3);
    Some(Command::ClaimApproval(ClaimApproval {
        event: event.announcement.id.clone(),
        approver,
        reason,
        decided_at_revision: decision,
        stints,
        until,
    }))
}

/// What the log says of the cloud may be old when its leader was lost: somebody has looked since this one leads.
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

/// Every replica that saw the event has been silent for so long that nobody will ever say that it is over.
fn event_to_forget(state: &State, event: &Event, input: &PlanningInput) -> Option<Command> {
    let forgotten = event.seen_by.iter().all(|name| {
        // One whose VM was deleted is not known any more, and says nothing.
        let Some(replica) = state.replicas.get(name) else { return true };
        replica.stale_since.is_some_and(|since| input.now.since(since) >= input.timing.forget_after)
    });
    (forgotten && !event.is_drill()).then(|| Command::ForgetEvent(ForgetEvent { event: event.announcement.id.clone() }))
}
