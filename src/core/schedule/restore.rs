//! The steps for a member's return (`SPEC.md` 9.1): undo of each hook that began and did not finish, then restore
//! hooks, then ready hooks. A finished failover stays. The steps stay due whatever happens to the events that took the
//! member out.

use crate::model::attempt::{Attempt, Outcome};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::VmName;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Hook, Intent, Member, OnFailure, Phase, RunsOn, Workload};
use crate::schedule::affected_members;
use crate::schedule::peers::may_run_on;
use crate::schedule::skip_reason::{allowed_in_dry_run, is_for_event_type};
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::{StepState, is_owed};
use alloc::vec::Vec;

/// The restore steps of members returning on account of this event, in running order.
pub fn restore_steps<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    let returning =
        state.slots.iter().filter(|(_, slot)| slot.state == SlotState::Returning && slot.by == event.announcement.id);
    returning.flat_map(|(member, slot)| restore_steps_of(state, event, member, slot)).collect()
}

/// When the failed restore of a member is tried again, by the time of the log; `None` while no restore has failed, and
/// while a hook of the restore runs.
pub fn retried_at(state: &State, member: &Member) -> Option<Timestamp> {
    state.failing_return(member)?;
    let slot = state.slots.get(member)?;
    let event = state.open_event(&slot.by)?;
    let steps = restore_steps_of(state, event, member, slot);
    let next = steps.iter().find(|step| !step_state::is_satisfied(event, step, state.now))?;
    match step_state::step_state(event, next, state.now) {
        StepState::Due { from, .. } => Some(from),
        _ => None,
    }
}

fn restore_steps_of<'a>(state: &'a State, event: &Event, member: &Member, slot: &Slot) -> Vec<Step<'a>> {
    let Some(replica) = state.replicas.get(&member.vm) else { return Vec::new() };
    let (now, former) = (replica.workload(&member.workload), replica.owed_workloads.get(&member.workload));
    let away = |id: HookId| {
        let of_now = now.filter(|workload| workload.hook(id).is_some());
        of_now.and_then(|workload| affected_members::away(state, member, workload))
    };
    let step = |(id, hook): (HookId, &'a Hook), is_undo: bool| Step {
        member: member.clone(),
        id,
        hook,
        when_disconnected: away(id),
        stint: slot.stint,
        attempts: attempts_since(state, member, id, if is_undo { slot.first_stint } else { slot.stint }),
        is_done_elsewhere: false,
        is_undo,
        on_failure: OnFailure::Hold,
    };
    let mut steps: Vec<Step<'a>> = Vec::new();
    if slot.needs_restore {
        let taken_away = former.into_iter().chain(now).flat_map(steps_to_undo);
        let may_be_run = |step: &Step<'_>| has_host(state, event, step);
        steps.extend(taken_away.map(|it| step(it, true)).filter(is_owed).filter(may_be_run));
        // Undo runs in reverse order.
        steps.reverse();
    }
    steps.extend(hooks_due(state, member, (now, former), event).into_iter().map(|it| step(it, false)));
    steps
}

/// Whether a VM can run the undo: an attempt of another VM is not undone if no VM has such a hook any more.
fn has_host(state: &State, event: &Event, step: &Step<'_>) -> bool {
    let is_host = |vm: &VmName| *vm != step.member.vm && may_run_on(state, event, step, Intent::Undo, vm);
    step.hook.runs_on != RunsOn::Peer || state.replicas.keys().any(is_host)
}

/// Restore and ready hooks of a returning member. A member without disruptive attempts is not restored, but its ready
/// hook runs, because the platform may have restarted the member. The present registration supplies the hooks; a phase
/// without hooks there falls back to the registration from the time of leaving. A hook for some types of events is due
/// after each event of such a type that the member was prepared for, because the last event may be of another type.
fn hooks_due<'a>(
    state: &State,
    member: &Member,
    (now, former): (Option<&'a Workload>, Option<&'a Workload>),
    event: &Event,
) -> Vec<(HookId, &'a Hook)> {
    let slot = state.slots.get(member);
    let owes = slot.is_some_and(|slot| slot.needs_restore);
    let phases: &[Phase] = if owes { &[Phase::Restore, Phase::Ready] } else { &[Phase::Ready] };
    let hooks = phases.iter().flat_map(|phase| {
        let known = now.filter(|workload| workload.hooks_of(*phase).next().is_some());
        known.or(former).into_iter().flat_map(|workload| workload.hooks_of(*phase))
    });
    let is_for_another =
        |hook: &Hook| slot.is_some_and(|slot| prepared_for(state, member, slot).any(|it| is_for_event_type(it, hook)));
    let is_due = |hook: &Hook| is_for_event_type(event, hook) || is_for_another(hook);
    hooks.filter(|(_, hook)| is_due(hook) && allowed_in_dry_run(event, hook)).collect()
}

/// The events that began to take the member away since the member left.
fn prepared_for<'a>(state: &'a State, member: &'a Member, slot: &'a Slot) -> impl Iterator<Item = &'a Event> {
    let takes_away = |attempt: &Attempt| {
        let is_of_member = attempt.stint >= slot.first_stint && attempt.member == *member;
        is_of_member && attempt.intent == Intent::Run && attempt.hook.phase.is_disruptive()
    };
    state.events().filter(move |event| event.attempts.iter().any(takes_away))
}

/// The part of a former registration still needed by a member out of service when the workload changes or is
/// deregistered; `None` where the new registration covers this part.
pub(crate) fn owed_of(
    state: &State,
    member: &Member,
    slot: &Slot,
    was: &Workload,
    is: Option<&Workload>,
) -> Option<Workload> {
    let is_left_without = |phase: Phase| is.is_none_or(|is| is.hooks_of(phase).next().is_none());
    let is_begun = |id: HookId| {
        state.open_events().flat_map(|event| &event.attempts).any(|attempt| {
            let is_of_hook = attempt.hook == id && attempt.member == *member && attempt.stint >= slot.first_stint;
            is_of_hook && attempt.intent == Intent::Run
        })
    };
    let is_owed = |(id, hook): (HookId, &Hook)| match id.phase {
        // A removed restore hook is still owed; a changed restore hook runs in the present form.
        Phase::Restore => is_left_without(Phase::Restore),
        Phase::Ready => is.is_none(),
        _ => hook.can_undo && is.is_none_or(|is| is.hook(id).is_none()) && is_begun(id),
    };
    let phases = Phase::ALL.into_iter();
    let owed = phases.flat_map(|phase| was.hooks_of(phase)).filter(|hook| is_owed(*hook));
    // Without the other hooks, a hook occurring twice would have another key, and peers have no position to use.
    let hooks: Vec<Hook> = owed.map(|(id, hook)| Hook { command_digest: id.key, ..hook.clone() }).collect();
    (is.is_none() || !hooks.is_empty()).then(|| Workload { hooks, ..was.clone() })
}

/// Whether the member has to be restored, or needs a ready hook, before the return to service.
pub(crate) fn is_awaited(state: &State, event: &Event, member: &Member, slot: &Slot) -> bool {
    slot.needs_restore || !hooks_due(state, member, (state.workload(member), None), event).is_empty()
}

/// The attempts of one hook since a stint, for any event, oldest first.
fn attempts_since<'a>(state: &'a State, member: &Member, hook: HookId, stint: u64) -> Vec<&'a Attempt> {
    let all = state.open_events().flat_map(|event| &event.attempts);
    let mut found: Vec<&Attempt> =
        all.filter(|attempt| attempt.stint >= stint && attempt.hook == hook && attempt.member == *member).collect();
    found.sort_by_key(|attempt| attempt.id);
    found
}

/// Whether every undo, restore and ready step of the member is satisfied.
pub(crate) fn is_restored(state: &State, member: &Member, slot: &Slot) -> bool {
    // The restore hooks of the member are unknown.
    let is_known = !slot.needs_restore || state.is_restorable(member);
    let Some(event) = state.open_event(&slot.by).filter(|_| is_known) else { return !slot.needs_restore };
    let steps = restore_steps_of(state, event, member, slot);
    steps.iter().all(|step| step_state::is_satisfied(event, step, state.now))
}

/// Whether a ready hook of the member has succeeded in the present stint.
pub(crate) fn has_become_ready(state: &State, member: &Member, slot: &Slot) -> bool {
    let answer = |attempt: &Attempt| {
        attempt.hook.phase == Phase::Ready && attempt.stint == slot.stint && attempt.member == *member
    };
    let mut answers = state.open_events().flat_map(|event| &event.attempts).filter(|attempt| answer(attempt));
    answers.any(|attempt| matches!(attempt.outcome, Some((Outcome::Done, _))))
}

/// Hooks of a workload that may need undo.
fn steps_to_undo(workload: &Workload) -> impl Iterator<Item = (HookId, &Hook)> {
    let phases = Phase::ALL.into_iter().filter(|phase| *phase < Phase::Restore);
    phases.flat_map(|phase| workload.hooks_of(phase))
}
