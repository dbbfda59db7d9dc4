//! Updates slots after each entry: events take and release slots, and restored members return.

use crate::apply::access::{open, registered};
use crate::apply::event_end;
use crate::apply::registry;
use crate::apply::report;
use crate::apply::slots::{take_all, take_one};
use crate::model::event::Event;
use crate::model::id::{EventId, GroupName};
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::workload::{Condition, Member, Readiness};
use crate::schedule::affected_members::needed;
use crate::schedule::attempts;
use crate::schedule::restore;
use crate::schedule::slots;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Applies the entry's changes of events, documents and workloads to slots.
pub fn update_slots(state: &mut State) {
    if state.open.is_empty() {
        return registry::drop_owed_restores(state);
    }
    loop {
        take_slots_of_platform(state);
        release_unneeded_slots(state);
        return_members(state);
        if !event_end::close_restored(state) {
            break;
        }
        // The closed event makes room for an event that is listed and not open.
        report::reopen_listed(state);
    }
    mark_stuck_events(state);
    mark_halted_events(state);
    registry::drop_owed_restores(state);
}

/// An event that is claimed, approved, started or in last call takes its missing slots, over the limit if need be; also
/// for VMs added by its latest document.
fn take_slots_of_platform(state: &mut State) {
    let now = state.now;
    let is_going = |event: &Event| {
        (Stage::Claimed..=Stage::Started).contains(&event.stage())
            || (event.has_isolated_approval() && !event.stage().is_over())
    };
    let takes = |event: &&Event| {
        let is_called = event.last_call_since.is_some() && !event.stage().is_over();
        !event.is_drill() && (is_going(event) || is_called)
    };
    let taking: Vec<EventId> = state.open_events().filter(takes).map(|event| event.announcement.id.clone()).collect();
    for id in taking {
        take_all(state, &id);
        if !state.open_event(&id).is_some_and(is_going) {
            continue;
        }
        take_slots_of_former_vms(state, &id);
        let of_event = state.slots.values_mut().filter(|slot| slot.events.contains(&id));
        for slot in of_event.filter(|slot| slot.state == SlotState::Leaving) {
            (slot.state, slot.since) = (SlotState::Out, now);
        }
    }
}

/// The platform stops a VM together with the workloads registered there before: these workloads are not restored
/// meanwhile, and an earlier restore does not count any more.
fn take_slots_of_former_vms(state: &mut State, id: &EventId) {
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

/// Releases slots of events that are over, or no longer affect the member; an unclaimed event also releases members
/// that are no longer registered. An event with an added member lacks the slot of this member.
fn release_unneeded_slots(state: &mut State) {
    let now = state.now;
    let State { open: events, replicas, slots, .. } = state;
    let is_registered = |member: &Member| replicas.get(&member.vm).is_some_and(|it| it.knows(&member.workload));
    let keeps = |member: &Member, id: &EventId| {
        let event = events.get(id).filter(|event| !event.stage().is_over() && event.affects(&member.vm));
        event.is_some_and(|event| event.is_under_way() || is_registered(member))
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

/// Returns members to service when their restore has succeeded and they are ready; members without disruptive attempts
/// return at once.
fn return_members(state: &mut State) {
    let now = state.now;
    let returning = state.slots.iter().filter(|(_, slot)| slot.state == SlotState::Returning);
    let back: Vec<Member> = returning
        .filter(|(member, slot)| restore::is_restored(state, member, slot))
        .filter(|(member, _)| !attempts::is_being_restored(state, member))
        .map(|(member, _)| member.clone())
        .collect();
    for member in back {
        let slot = state.slots.remove(&member);
        // The member has just become ready, and the readiness before the departure no longer counts.
        let is_ready = slot.is_some_and(|slot| restore::has_become_ready(state, &member, &slot));
        let condition = state.condition(&member).filter(|known| is_ready && known.readiness == Readiness::NotReady);
        if let (Some(condition), Ok(replica)) = (condition, registered(state, &member.vm)) {
            registry::keep(replica, &member.workload, Condition { readiness: Readiness::Ready, ..condition }, now);
        }
    }
}

/// Updates the time since which an event keeps members out and does not go on.
fn mark_stuck_events(state: &mut State) {
    let now = state.now;
    let holders: BTreeSet<EventId> = state.slots.values().flat_map(|slot| slot.events.iter().cloned()).collect();
    for id in holders {
        let Some(event) = state.open_event(&id) else { continue };
        let since = slots::is_stuck(state, event, now).then(|| event.stuck_since.unwrap_or(now));
        let is_prepared = event.stage() <= Stage::Preparing && event.last_call_since.is_none();
        let goes_on = since.is_none() && event.slots_since.is_some() && is_prepared;
        if since != event.stuck_since
            && let Some(event) = state.open.get_mut(&id)
        {
            let event = Arc::make_mut(event);
            event.stuck_since = since;
            if goes_on {
                event.restart_budget(now);
            }
        }
    }
}

/// Updates the end of the time in which no disruptive hook of an event may begin. The budget counts from this end: otherwise
/// the end would approve the event without its hooks.
fn mark_halted_events(state: &mut State) {
    let now = state.now;
    let changed = state.open_events().filter_map(|event| {
        let until = slots::halted_until(state, event, now).or(event.halted_until.map(|until| until.min(now)));
        (until != event.halted_until).then(|| (event.announcement.id.clone(), until))
    });
    for (id, until) in changed.collect::<Vec<_>>() {
        if let Some(event) = state.open.get_mut(&id) {
            Arc::make_mut(event).halted_until = until;
        }
    }
}
