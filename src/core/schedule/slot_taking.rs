//! Whether an event may take its missing slots, and the causes to wait (`SPEC.md` 8, R2 to R5).

use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::slot::{SlotCause, SlotState};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use crate::schedule::affected_members::needed;
use crate::schedule::attempts;
use crate::schedule::groups::{by_group, filled, max_unavailable};
use crate::schedule::slot_queue::queue_position;
use crate::schedule::slots::{SlotDeferred, is_exempt, is_ready_for_slots, is_repair, restore_owed_under_another_name};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The cause for which an event without all slots waits; `None` when the event may take all missing slots.
pub fn slots_denied_by(state: &State, event: &Event, now: Timestamp) -> Option<SlotDeferred> {
    if event.is_over_budget() || is_exempt(state, event) || is_repair(state, event) {
        return None;
    }
    // Members whose slots the event itself returned come back first, and a running restore is not cut short.
    let being_restored = || {
        needed(state, event).into_iter().find_map(|(member, group)| {
            let slot = state.slots.get(&member).filter(|slot| slot.state == SlotState::Returning)?;
            let is_own = slot.by == event.announcement.id && slot.needs_restore;
            let is_awaited = is_own || attempts::is_being_restored(state, &member);
            is_awaited
                .then(|| SlotDeferred { group: group.cloned(), by: [SlotCause::Returning(slot.by.clone())].into() })
        })
    };
    let groups = by_group(state, event);
    let over = groups.iter().find_map(|(group, own)| limit_reached(state, event, group, own));
    let former = || restore_owed_under_another_name(state, event);
    over.or_else(being_restored).or_else(former).or_else(|| deferred_by_queue(state, event, &groups, now))
}

/// The members out of service leave no room in the group's limit for the event's own members.
fn limit_reached(state: &State, event: &Event, group: &GroupName, own: &[Member]) -> Option<SlotDeferred> {
    let limit = max_unavailable(state, group);
    let mut by: Vec<SlotCause> = Vec::new();
    let others = filled(state, group).into_iter().filter(|(member, _)| !own.contains(member));
    let others: Vec<SlotCause> = others.map(|(_, cause)| cause).collect();
    if own.len() > limit {
        // The platform stops all these members at once, so no other member may be out of service, or about to leave.
        let rivals = state.open_events().filter(|other| other.announcement.id != event.announcement.id);
        let rivals =
            rivals.filter(|other| own.iter().any(|member| state.stint(&other.announcement.id, member).is_some()));
        by.extend(rivals.map(|other| SlotCause::Event(other.announcement.id.clone())));
        by.extend(others);
    } else if others.len() + own.len() > limit {
        by = others;
    }
    by.sort_unstable();
    by.dedup();
    (!by.is_empty()).then(|| SlotDeferred { group: Some(group.clone()), by })
}

/// An earlier event that waits for a slot of a group in which this event also lacks a slot (R4).
fn deferred_by_queue(
    state: &State,
    event: &Event,
    groups: &BTreeMap<&GroupName, Vec<Member>>,
    now: Timestamp,
) -> Option<SlotDeferred> {
    let lacks =
        |event: &Event, own: &[Member]| own.iter().any(|member| state.stint(&event.announcement.id, member).is_none());
    // If other events keep all members of the event out already, the event only shares slots.
    if groups.values().flatten().all(|member| state.slots.get(member).is_some_and(|slot| !slot.events.is_empty())) {
        return None;
    }
    let waiting = state.open_events().filter(|other| {
        other.announcement.id != event.announcement.id
            && other.slots_since.is_none()
            && queue_position(state, other, now) < queue_position(state, event, now)
            && is_ready_for_slots(state, other, now)
            && restore_owed_under_another_name(state, other).is_none()
    });
    let waiting: Vec<(&Event, BTreeMap<&GroupName, Vec<Member>>)> = waiting
        .map(|other| (other, by_group(state, other)))
        .filter(|(_, groups)| !is_taken_by_sick_members(state, groups))
        .collect();
    groups.iter().filter(|(_, own)| lacks(event, own)).find_map(|(group, _)| {
        let before =
            waiting.iter().filter(|(other, theirs)| theirs.get(group).is_some_and(|theirs| lacks(other, theirs)));
        let by: Vec<SlotCause> = before.map(|(other, _)| SlotCause::Queue(other.announcement.id.clone())).collect();
        (!by.is_empty()).then(|| SlotDeferred { group: Some((*group).clone()), by })
    })
}

/// Whether sick members, which return only by their own recovery, leave too few slots for the event.
fn is_taken_by_sick_members(state: &State, groups: &BTreeMap<&GroupName, Vec<Member>>) -> bool {
    groups.iter().any(|(group, own)| {
        let sick =
            filled(state, group).into_iter().filter(|(member, cause)| !own.contains(member) && cause.is_sickness());
        let (sick, limit) = (sick.count(), max_unavailable(state, group));
        if own.len() > limit { sick > 0 } else { sick + own.len() > limit }
    })
}
