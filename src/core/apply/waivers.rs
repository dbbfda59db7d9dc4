//! Waivers of hooks that no reachable replica can run (`SPEC.md` 5.10). A skip is a request of an operator.

use crate::apply::access::{Applied, open};
use crate::model::attempt::{Waiver, WaiverReason};
use crate::model::command::{Rejection, WaiveHook};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::{EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::workload::Member;
use crate::schedule::required;
use alloc::vec::Vec;

pub(crate) fn waive_hook(state: &mut State, waived: &WaiveHook) -> Applied {
    let WaiveHook { event: id, member, hook, why } = waived;
    let hook = *hook;
    let now = state.now;
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    // Restore hooks are mandatory, whatever happens to the VM meanwhile.
    if !required::required_steps(state, event).iter().any(|step| step.member == *member && step.id == hook) {
        return Err(Rejection::NotDue);
    }
    let event = open(state, id)?;
    if !matches!(event.stage(), Stage::Announced | Stage::Preparing) {
        return Err(Rejection::NotNow);
    }
    match why {
        WaiverReason::Unreachable if !event.is_user_initiated() => return Err(Rejection::NotDue),
        WaiverReason::Unreachable => {}
        // A skip is an operator's request.
        WaiverReason::Skipped { .. } => return Err(Rejection::NotYours),
    }
    if event.waiver(member, hook).is_some() {
        return Err(Rejection::Repeated);
    }
    event.waivers.push(Waiver { member: member.clone(), hook, why: why.clone(), at: now });
    event.restart_budget(now);
    event.revision += 1;
    Ok(())
}

/// Takes the waivers of a replica back when the replica answers again while the event is undecided: the hooks can run now.
/// If a hook was tried since the member left, its waiver stays, because the vanished attempt would hold the event. The
/// budget goes on, and counts anew only after a new waiver.
pub(crate) fn take_back_waivers(state: &mut State, is_back: impl Fn(&Event, &VmName) -> bool) {
    let undecided = state.open_events().filter(|event| event.is_undecided());
    let taken_back = undecided.map(|event| {
        let hooks = waivers_to_take_back(state, event, |vm| is_back(event, vm));
        (event.announcement.id.clone(), hooks)
    });
    let taken_back: Vec<(EventId, Vec<HookOfMember>)> = taken_back.filter(|(_, hooks)| !hooks.is_empty()).collect();
    for (id, hooks) in taken_back {
        if let Ok(event) = open(state, &id) {
            event.waivers.retain(|waiver| !hooks.contains(&(waiver.member.clone(), waiver.hook)));
            event.revision += 1;
        }
    }
}

type HookOfMember = (Member, HookId);

fn waivers_to_take_back(state: &State, event: &Event, is_back: impl Fn(&VmName) -> bool) -> Vec<HookOfMember> {
    let is_over = |waiver: &&Waiver| waiver.why == WaiverReason::Unreachable && is_back(&waiver.member.vm);
    let mut over = event.waivers.iter().filter(is_over).peekable();
    if over.peek().is_none() {
        return Vec::new();
    }
    let steps = required::required_steps(state, event);
    // A blocked hook has begun nothing.
    let was_tried = |waiver: &&Waiver| {
        let mut own = steps.iter().filter(|step| step.member == waiver.member && step.id == waiver.hook);
        own.any(|step| step.forward().any(|attempt| !attempt.is_blocked()))
    };
    over.filter(|waiver| !was_tried(waiver)).map(|waiver| (waiver.member.clone(), waiver.hook)).collect()
}
