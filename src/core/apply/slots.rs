//! Commands that change slots.

use crate::apply::access::{Applied, open, registered};
use crate::apply::registry;
use crate::apply::waivers;
use crate::model::command::Rejection;
use crate::model::event::Event;
use crate::model::id::{EventId, GroupName, VmName};
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Condition, Hook, Member, Origin, Phase, Readiness, Workload};
use crate::schedule::affected_members::needed;
use crate::schedule::attempts;
use crate::schedule::last_call;
use crate::schedule::slot_taking;
use crate::schedule::slots;
use crate::schedule::slots::GIVES_BACK_AT_MOST;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The returns of an event that its history names, the last ones.
const RETURNS_KEPT: usize = 10;

/// Takes every slot that the event lacks.
pub(crate) fn take_slots(state: &mut State, id: &EventId) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if event.slots_since.is_some() {
        return Err(Rejection::Repeated);
    }
    if !slots::is_ready_for_slots(state, event, now) {
        return Err(Rejection::NotNow);
    }
    if slot_taking::slots_denied_by(state, event, now).is_some() {
        return Err(Rejection::NotDue);
    }
    take_all(state, id);
    Ok(())
}

/// Begins the last call: the event is prepared over the budget as far as hooks move service away.
pub(crate) fn begin_last_call(state: &mut State, id: &EventId) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if event.last_call_since.is_some() {
        return Err(Rejection::Repeated);
    }
    if !last_call::is_due(state, event, now) {
        return Err(Rejection::NotNow);
    }
    open(state, id)?.last_call_since = Some(now);
    take_all(state, id);
    Ok(())
}

/// Returns slots, by the leader, when the event has kept members out for too long without going on.
pub(crate) fn give_back_slots(state: &mut State, id: &EventId) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if !slots::gives_back_now(state, event, now) {
        return Err(Rejection::NotNow);
    }
    // An operator's hold, pause or approval is bounded by the operator.
    let is_halted = event.hold(now).is_some() || state.pause(now).is_some() || event.is_approved_by_operator();
    let event = open(state, id)?;
    event.times_given_back = (event.times_given_back + u32::from(!is_halted)).min(GIVES_BACK_AT_MOST);
    event.is_deferred |= !is_halted;
    event.slots_since = None;
    event.stuck_since = None;
    keep_return(event, now);
    event.revision += 1;
    for slot in state.slots.values_mut() {
        slot.events.remove(id);
    }
    Ok(())
}

/// Returns during a hold or a pause have no other limit.
fn keep_return(event: &mut Event, at: Timestamp) {
    if event.gave_back.len() >= RETURNS_KEPT {
        event.gave_back.remove(0);
    }
    event.gave_back.push(at);
}

/// Ends the restore of a member declared to be in service by an operator.
pub(crate) fn declare_restored(state: &mut State, member: &Member) -> Applied {
    let slot = state.slots.get(member).ok_or(Rejection::Repeated)?;
    if !matches!(slot.state, SlotState::Returning | SlotState::Gone) {
        return Err(Rejection::NotNow);
    }
    state.slots.remove(member);
    // The operator may be wrong. The next event takes another member only when the member's own `ready` hook agrees. A
    // session is not asked regularly.
    let asks = |workload: &Workload| {
        let is_ready_hook = |hook: &Hook| hook.phase == Phase::Ready;
        workload.origin == Origin::Configured && workload.hooks.iter().any(is_ready_hook)
    };
    if state.workload(member).is_some_and(asks) {
        let now = state.now;
        let replica = registered(state, &member.vm)?;
        let condition = Condition { readiness: Readiness::NotReady, ..replica.condition(&member.workload) };
        registry::keep(replica, &member.workload, condition, now);
    }
    Ok(())
}

/// Records that the leader has had no answer of this replica for some time, or has an answer again.
pub(crate) fn record_reachability(state: &mut State, name: &VmName, is_reachable: bool) -> Applied {
    let now = state.now;
    let replica = registered(state, name)?;
    if replica.unreachable.is_none() == is_reachable {
        return Err(Rejection::Repeated);
    }
    replica.unreachable = (!is_reachable).then_some(now);
    if is_reachable {
        waivers::take_back_waivers(state, |_, vm| vm == name);
    }
    Ok(())
}

/// Abandons restores for a removed replica, or a replica with a deleted VM: no restore will run, and no wait remains.
pub(crate) fn abandon_restores(state: &mut State, replica: &VmName) -> Applied {
    let before = state.slots.len();
    let is_left = |slot: &Slot| matches!(slot.state, SlotState::Returning | SlotState::Gone);
    state.slots.retain(|member, slot| member.vm != *replica || !is_left(slot));
    if state.slots.len() < before { Ok(()) } else { Err(Rejection::Repeated) }
}

/// Takes all slots without checks: the event is prepared, approved or started.
pub fn take_all(state: &mut State, id: &EventId) {
    let now = state.now;
    let Some(event) = state.open_event(id) else { return };
    let members: Vec<(Member, Option<GroupName>)> =
        needed(state, event).into_iter().map(|(member, group)| (member, group.cloned())).collect();
    let mut is_news = event.slots_since.is_none();
    for (member, group) in members {
        is_news |= take_one(state, id, member, group);
    }
    if let Ok(event) = open(state, id)
        && is_news
    {
        event.slots_since = Some(now);
        event.revision += 1;
    }
}

pub(crate) fn take_one(state: &mut State, id: &EventId, member: Member, group: Option<GroupName>) -> bool {
    let now = state.now;
    let (was_fit, has_failed) = (state.is_fit_for(id, &member), state.has_failed_to_return(&member));
    // A member restored meanwhile has to leave again, and the hooks of returned slots are due again.
    let is_own = state.slots.get(&member).is_some_and(|slot| slot.by == *id);
    let is_another_stint = is_own || attempts::is_restore_begun(state, &member);
    let next = state.stints + 1;
    if let Some(slot) = state.slots.get_mut(&member).filter(|slot| slot.state != SlotState::Gone) {
        if !slot.events.insert(id.clone()) {
            return false;
        }
        slot.by = id.clone();
        if slot.state == SlotState::Returning {
            (slot.state, slot.since) = (SlotState::Leaving, now);
            if is_another_stint {
                (slot.stint, slot.was_fit, slot.restore_failed) = (next, was_fit, has_failed);
                state.stints = next;
            }
        }
        return true;
    }
    state.stints = next;
    // Another event still names a VM that was deleted by all accounts: if the VM is there after all, the hooks of the
    // last stint are not forgotten.
    let needs_restore = state.slots.get(&member).is_some_and(|gone| gone.needs_restore);
    let slot = Slot {
        stint: next,
        first_stint: next,
        state: SlotState::Leaving,
        since: now,
        group,
        events: BTreeSet::from([id.clone()]),
        by: id.clone(),
        was_fit,
        restore_failed: false,
        needs_restore,
    };
    state.slots.insert(member, slot);
    true
}

/// A new member of the group replaces a member whose VM was deleted.
pub(crate) fn replace_decommissioned(state: &mut State, member: &Member, group: &GroupName) {
    let is_gone = |slot: &Slot| slot.state == SlotState::Gone && slot.group.as_ref() == Some(group);
    let own = state.slots.get(member).is_some_and(is_gone).then(|| member.clone());
    let gone = own.or_else(|| state.slots.iter().find(|(_, slot)| is_gone(slot)).map(|(gone, _)| gone.clone()));
    if let Some(gone) = gone {
        state.slots.remove(&gone);
    }
}

/// Marks the members of a deleted VM as gone: no restore runs for these members.
pub(crate) fn drop_members_of(state: &mut State, vm: &VmName) {
    let now = state.now;
    for (_, slot) in state.slots.iter_mut().filter(|(member, _)| member.vm == *vm) {
        slot.events.clear();
        (slot.state, slot.since) = (SlotState::Gone, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::document::Status;
    use crate::model::document::tests::announced;

    #[test]
    fn an_event_keeps_its_last_returns() {
        let mut event = Event::first_seen_as(announced("e", Status::Scheduled), VmName::new("a"), Timestamp(0));
        (1..=12).for_each(|at| keep_return(&mut event, Timestamp(at)));
        assert_eq!(event.gave_back, (3..=12).map(Timestamp).collect::<Vec<_>>());
    }
}
