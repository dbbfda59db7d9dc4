//! Ends events, and moves them to the history when their members are back in service.

use crate::apply::access::{Applied, open};
use crate::apply::slots;
use crate::apply::stages::enter_stage;
use crate::model::attempt::Attempt;
use crate::model::bytes::HISTORY_BYTES;
use crate::model::command::Rejection;
use crate::model::document::EventType;
use crate::model::event::{Ending, Event};
use crate::model::id::{EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::{HISTORY_AGE, HISTORY_LIMIT, State};
use crate::model::workload::Member;
use crate::schedule::restore;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The event is over: its ending is fixed, and its members return.
pub(crate) fn end_event(state: &mut State, id: &EventId, ending: Option<Ending>) {
    let now = state.now;
    let is_outlived = state.open_event(id).is_some_and(|event| is_outlived(state, event));
    let Ok(event) = open(state, id) else { return };
    let happened = event.may_have_started() && !is_outlived;
    event.ending = ending.or(Some(if happened { Ending::Completed } else { Ending::Cancelled }));
    let deleted: Vec<VmName> = if event.deletes_vms() { event.announcement.resources.clone() } else { Vec::new() };
    let owes = owes(state, id);
    let Ok(event) = open(state, id) else { return };
    enter_stage(event, if owes { Stage::Restoring } else { Stage::Closed }, now);
    for vm in deleted {
        slots::drop_members_of(state, &vm);
    }
}

/// Whether a hook of the event runs, or a member has yet to be restored, or to become ready, on the event's account.
fn owes(state: &State, id: &EventId) -> bool {
    let Some(event) = state.open_event(id).filter(|_| !is_busy(state, id)) else { return true };
    let is_of = |member: &Member, slot: &Slot| {
        let took_part = |attempt: &Attempt| attempt.member == *member && attempt.stint >= slot.first_stint;
        slot.by == *id || slot.events.contains(id) || event.attempts.iter().any(took_part)
    };
    let is_awaited = |member: &Member, slot: &Slot| {
        (slot.needs_restore && is_of(member, slot))
            || (slot.by == *id && restore::is_awaited(state, event, member, slot))
    };
    state.slots.iter().any(|(member, slot)| slot.state != SlotState::Gone && is_awaited(member, slot))
}

fn is_busy(state: &State, id: &EventId) -> bool {
    state.open_event(id).is_some_and(|event| event.attempts.iter().any(|attempt| attempt.outcome.is_none()))
}

/// A deletion never seen as `Started` was cancelled, approved or not, if an affected VM itself reports the event as
/// gone.
fn is_outlived(state: &State, event: &Event) -> bool {
    let id = &event.announcement.id;
    let survives =
        |vm: &VmName| event.affects(vm) && state.replicas.get(vm).is_some_and(|replica| replica.no_longer_lists(id));
    let has_begun = event.entered_at(Stage::Started).is_some();
    event.announcement.kind == EventType::Terminate && !has_begun && event.seen_by.iter().any(survives)
}

/// Moves events that are over and whose members are back to the history. True if at least one event moved.
pub(crate) fn close_restored(state: &mut State) -> bool {
    let now = state.now;
    let over = state.open_events().filter(|event| event.stage().is_over());
    let over = over.map(|event| &event.announcement.id).filter(|id| !owes(state, id));
    let closed: Vec<EventId> = over.cloned().collect();
    for id in &closed {
        let Some(mut event) = state.open.remove(id) else { continue };
        enter_stage(Arc::make_mut(&mut event), Stage::Closed, now);
        state.history.push_back(event);
    }
    if closed.is_empty() {
        return false;
    }
    shorten_history(state);
    let is_old = |event: &Event| event.entered_at(Stage::Closed).is_some_and(|at| now.since(at) > HISTORY_AGE);
    while state.closed_events().next().is_some_and(is_old) {
        state.history.pop_front();
    }
    true
}

/// Events without concern for this cluster are removed first, oldest first: events made up by an endpoint do not push
/// the cluster's own events out of the history.
fn shorten_history(state: &mut State) {
    let mut bytes: usize = state.closed_events().map(Event::bytes).sum();
    while state.history.len() > HISTORY_LIMIT || bytes > HISTORY_BYTES {
        let least = state.closed_events().position(|event| !event.is_of_concern(state)).unwrap_or(0);
        let Some(gone) = state.history.remove(least) else { return };
        bytes = bytes.saturating_sub(gone.bytes());
    }
}

pub(crate) fn forget_event(state: &mut State, id: &EventId) -> Applied {
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if event.is_drill() {
        return Err(Rejection::NotDue);
    }
    if event.stage().is_over() {
        return Err(Rejection::Repeated);
    }
    if state.is_listed(id) {
        return Err(Rejection::NotNow);
    }
    end_event(state, id, Some(Ending::Forgotten));
    Ok(())
}
