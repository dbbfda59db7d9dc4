//! The part of `apply` that changes slots: events take them and give them back, members return, and what the documents
//! say of an event is carried over to its members.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::apply::{Applied, open, registered};
use super::command::Ignored;
use super::event::Event;
use super::id::{EventId, GroupName, VmName};
use super::last_call;
use super::lifecycle::Stage;
use super::restoring;
use super::roster;
use super::sight;
use super::slot::{Slot, SlotState, needed};
use super::slots::{self, GIVES_BACK_AT_MOST};
use super::state::State;
use super::steps;
use super::workload::{Condition, Member, Readiness};

/// The event takes every slot that it lacks.
pub(super) fn take(state: &mut State, id: &EventId) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if event.slots_since.is_some() {
        return Err(Ignored::Repeated);
    }
    if !slots::is_able(state, event, now) {
        return Err(Ignored::NotNow);
    }
    if slots::barred_from_taking(state, event, now).is_some() {
        return Err(Ignored::NotDue);
    }
    take_all(state, id);
    Ok(())
}

/// The event is prepared over the budget as far as that moves service away.
pub(super) fn last_call(state: &mut State, id: &EventId) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if event.last_call.is_some() {
        return Err(Ignored::Repeated);
    }
    if !last_call::is_due(state, event, now) {
        return Err(Ignored::NotNow);
    }
    open(state, id)?.last_call = Some(now);
    take_all(state, id);
    Ok(())
}

/// By the leader, when the event has kept members out for too long without going on.
pub(super) fn give_back(state: &mut State, id: &EventId) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if !slots::is_stuck(state, event, now) || slots::gives_back_at(state, event).is_none_or(|at| now < at) {
        return Err(Ignored::NotNow);
    }
    // What an operator holds up is theirs to bound.
    let is_halted = event.hold(now).is_some() || state.pause(now).is_some() || event.is_approved_by_operator();
    let event = open(state, id)?;
    event.given_back = (event.given_back + u32::from(!is_halted)).min(GIVES_BACK_AT_MOST);
    event.is_deferred |= !is_halted;
    event.slots_since = None;
    event.stuck_since = None;
    event.revision += 1;
    for slot in state.slots.values_mut() {
        slot.events.remove(id);
    }
    Ok(())
}

/// An operator says that the member is in service.
pub(super) fn declare_restored(state: &mut State, member: &Member) -> Applied {
    let slot = state.slots.get(member).ok_or(Ignored::Repeated)?;
    if !matches!(slot.state, SlotState::Returning | SlotState::Gone) {
        return Err(Ignored::NotNow);
    }
    state.slots.remove(member);
    Ok(())
}

/// The leader has not heard from this replica for some time, or hears it again.
pub(super) fn contact(state: &mut State, replica: &VmName, is_reachable: bool) -> Applied {
    let now = state.now;
    let replica = registered(state, replica)?;
    if replica.unreachable.is_none() == is_reachable {
        return Err(Ignored::Repeated);
    }
    replica.unreachable = (!is_reachable).then_some(now);
    Ok(())
}

/// Nobody restores the workloads of a replica that was removed, or whose VM was deleted, and nobody waits for that.
pub(super) fn removed(state: &mut State, replica: &VmName) -> Applied {
    let before = state.slots.len();
    let is_left = |slot: &Slot| matches!(slot.state, SlotState::Returning | SlotState::Gone);
    state.slots.retain(|member, slot| member.vm != *replica || !is_left(slot));
    if state.slots.len() < before { Ok(()) } else { Err(Ignored::Repeated) }
}

/// Whatever stands against it: the event is prepared, approved or started.
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
        event.slots_since.get_or_insert(now);
        event.revision += 1;
    }
}

fn take_one(state: &mut State, id: &EventId, member: Member, group: Option<GroupName>) -> bool {
    let now = state.now;
    let (was_fit, has_failed) = (state.is_fit(&member), state.has_failed_to_return(&member));
    // What was put back meanwhile has to be taken away again, and what the event gave back is due again.
    let is_own = state.slots.get(&member).is_some_and(|slot| slot.by == *id);
    let is_another_stint = is_own || steps::is_restore_begun(state, &member);
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
        needs_restore: false,
    };
    state.slots.insert(member, slot);
    true
}

/// A new member of the group takes the place of one whose VM was deleted.
pub(super) fn replace_gone(state: &mut State, member: &Member, group: &GroupName) {
    let is_gone = |slot: &Slot| slot.state == SlotState::Gone && slot.group.as_ref() == Some(group);
    let own = state.slots.get(member).is_some_and(is_gone).then(|| member.clone());
    let gone = own.or_else(|| state.slots.iter().find(|(_, slot)| is_gone(slot)).map(|(gone, _)| gone.clone()));
    if let Some(gone) = gone {
        state.slots.remove(&gone);
    }
}

/// The VM of these members was deleted: nothing of them is restored.
pub(super) fn lose(state: &mut State, vm: &VmName) {
    let now = state.now;
    for (_, slot) in state.slots.iter_mut().filter(|(member, _)| member.vm == *vm) {
        slot.events.clear();
        (slot.state, slot.since) = (SlotState::Gone, now);
    }
}

/// Carries over to slots what the entry has changed about events, documents and workloads.
pub fn settle(state: &mut State) {
    if state.open.is_empty() {
        return roster::forget_what_was_owed(state);
    }
    loop {
        take_what_the_platform_takes(state);
        let_go(state);
        bring_back(state);
        // Closing an event may take up another one.
        if !sight::close_restored(state) {
            break;
        }
    }
    watch_the_stuck(state);
    roster::forget_what_was_owed(state);
}

/// What is claimed, approved, started or in last call takes what it lacks, over the limit if need be: also what its
/// document names only now.
fn take_what_the_platform_takes(state: &mut State) {
    let now = state.now;
    let is_going = |event: &Event| {
        (Stage::Claimed..=Stage::Started).contains(&event.stage())
            || (event.is_taken_over() && !event.stage().is_over())
    };
    let takes = |event: &&Event| {
        let is_called = event.last_call.is_some() && !event.stage().is_over();
        !event.is_drill() && (is_going(event) || is_called)
    };
    let taking: Vec<EventId> = state.open_events().filter(takes).map(|event| event.announcement.id.clone()).collect();
    for id in taking {
        take_all(state, &id);
        if !state.open_event(&id).is_some_and(is_going) {
            continue;
        }
        take_the_former(state, &id);
        let of_event = state.slots.values_mut().filter(|slot| slot.events.contains(&id));
        for slot in of_event.filter(|slot| slot.state == SlotState::Leaving) {
            (slot.state, slot.since) = (SlotState::Out, now);
        }
    }
}

/// The platform takes a VM with what was registered there before, too: it is not restored meanwhile, and what was put back
/// before counts no more.
fn take_the_former(state: &mut State, id: &EventId) {
    let Some(event) = state.open_event(id) else { return };
    let is_former = |member: &Member, slot: &Slot| {
        let is_returning = slot.state == SlotState::Returning && event.affects(&member.vm);
        is_returning && state.replicas.get(&member.vm).is_some_and(|it| !it.knows(&member.workload))
    };
    let former = state.slots.iter().filter(|(member, slot)| is_former(member, slot));
    let former: Vec<(Member, Option<GroupName>)> =
        former.map(|(member, slot)| (member.clone(), slot.group.clone())).collect();
    for (member, group) in former {
        take_one(state, id, member, group);
    }
}

/// An event that is over, or no longer names a member, does not keep it out; nor does one that is not claimed yet keep
/// out what is registered no more. What an event names anew it lacks.
fn let_go(state: &mut State) {
    let now = state.now;
    let State { open: events, replicas, slots, .. } = state;
    let is_registered = |member: &Member| replicas.get(&member.vm).is_some_and(|it| it.knows(&member.workload));
    let keeps = |member: &Member, id: &EventId| {
        let event = events.get(id).filter(|event| !event.stage().is_over() && event.affects(&member.vm));
        event.is_some_and(|event| event.is_going() || is_registered(member))
    };
    for (member, slot) in slots {
        slot.events.retain(|id| keeps(member, id));
        if let Some(last) = slot.events.last().filter(|_| !slot.events.contains(&slot.by)) {
            slot.by = last.clone();
        }
        if slot.events.is_empty() && matches!(slot.state, SlotState::Leaving | SlotState::Out) {
            (slot.state, slot.since) = (SlotState::Returning, now);
        }
    }
    let grown: Vec<EventId> = state
        .open_events()
        .filter(|event| event.slots_since.is_some() && !event.stage().is_over())
        .filter(|event| {
            needed(state, event).iter().any(|(member, _)| state.stint(&event.announcement.id, member).is_none())
        })
        .map(|event| event.announcement.id.clone())
        .collect();
    for id in grown {
        if let Ok(event) = open(state, &id) {
            event.slots_since = None;
            event.revision += 1;
        }
    }
}

/// A member is in service when its restore has ended well and it is ready; one that nothing was done to, at once.
fn bring_back(state: &mut State) {
    let now = state.now;
    let returning = state.slots.iter().filter(|(_, slot)| slot.state == SlotState::Returning);
    let back: Vec<Member> = returning
        .filter(|(member, slot)| restoring::is_restored(state, member, slot))
        .filter(|(member, _)| !steps::is_being_restored(state, member))
        .map(|(member, _)| member.clone())
        .collect();
    for member in back {
        let slot = state.slots.remove(&member);
        // It has just said so, and what it said before it left counts no more.
        let is_ready = slot.is_some_and(|slot| restoring::has_answered(state, &member, &slot));
        let condition = state.condition(&member).filter(|known| is_ready && known.readiness == Readiness::NotReady);
        if let (Some(condition), Ok(replica)) = (condition, registered(state, &member.vm)) {
            roster::keep(replica, &member.workload, Condition { readiness: Readiness::Ready, ..condition }, now);
        }
    }
}

/// Since when an event keeps members out and does not go on.
fn watch_the_stuck(state: &mut State) {
    let now = state.now;
    let holders: BTreeSet<EventId> = state.slots.values().flat_map(|slot| slot.events.iter().cloned()).collect();
    for id in holders {
        let Some(event) = state.open_event(&id) else { continue };
        let since = slots::is_stuck(state, event, now).then(|| event.stuck_since.unwrap_or(now));
        if since != event.stuck_since
            && let Some(event) = state.open.get_mut(&id)
        {
            Arc::make_mut(event).stuck_since = since;
        }
    }
}
