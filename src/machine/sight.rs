//! The part of `apply` that follows the documents: events appear, move on, end and are closed.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::apply::{Applied, open, registered};
use super::attempt::Attempt;
use super::command::Ignored;
use super::document::{Announcement, Document, Kind, NotBefore, Status};
use super::event::{Ending, Event};
use super::id::{EventId, VmName};
use super::lifecycle::Stage;
use super::restoring;
use super::slot::{Slot, SlotState};
use super::slot_changes;
use super::state::{HISTORY_AGE, HISTORY_LIMIT, OPEN_LIMIT, State};
use super::time::Timestamp;
use super::workload::Member;

pub(super) fn report(state: &mut State, by: &VmName, after: u64, document: &Document) -> Applied {
    let replica = registered(state, by)?;
    if replica.reports != after {
        return Err(Ignored::OutOfOrder);
    }
    replica.reports += 1;
    replica.discounted = None;
    replica.document = Some(document.clone());
    for announcement in &document.events {
        sight(state, by, announcement);
    }
    look_again(state);
    Ok(())
}

/// Takes over one announcement of a document.
fn sight(state: &mut State, by: &VmName, announcement: &Announcement) {
    let now = state.now;
    if let Some(event) = state.open.get_mut(&announcement.id) {
        let known = &event.announcement;
        let merged = (announcement != known && announcement.status >= known.status).then(|| Announcement {
            // A started event's NotBefore is blank; the last one announced tells why it started.
            not_before: match announcement.not_before {
                NotBefore::Unknown => known.not_before,
                at @ NotBefore::At(_) => at,
            },
            ..announcement.clone()
        });
        let merged = merged.filter(|merged| merged != known);
        let is_news = merged.is_some() || !event.seen_by.contains(by);
        // Most of a document is known: what is not changed is not copied.
        if is_news && !event.stage().is_over() && !event.is_drill() {
            let event = Arc::make_mut(event);
            event.seen_by.insert(by.clone());
            if let Some(merged) = merged {
                event.announcement = merged;
            }
            event.revision += 1;
        }
        return;
    }
    if !is_to_come(state, announcement) || state.open.len() >= OPEN_LIMIT {
        return;
    }
    let event = Event::first_seen_as(announcement.clone(), by.clone(), now);
    state.open.insert(announcement.id.clone(), event.into());
}

pub(super) fn discount(state: &mut State, replica: &VmName) -> Applied {
    let now = state.now;
    let replica = registered(state, replica)?;
    if replica.discounted.is_some() {
        return Err(Ignored::Repeated);
    }
    replica.discounted = Some(now);
    look_again(state);
    Ok(())
}

/// Moves every event on as far as the current documents say.
pub(super) fn look_again(state: &mut State) {
    let now = state.now;
    let mut over = Vec::new();
    for (id, event) in state.open.iter().filter(|(_, event)| !event.is_drill()) {
        let started = state.observed_status(id) == Some(&Status::Started);
        let gone = !event.stage().is_over() && state.is_gone(id, &event.seen_by);
        if gone || (started && event.stage() < Stage::Started) {
            over.push((id.clone(), gone));
        }
    }
    for (id, gone) in over {
        if gone {
            end(state, &id, None);
        } else if let Ok(event) = open(state, &id) {
            enter(event, Stage::Started, now);
        }
    }
}

/// The event is over: its ending is fixed, and its members return.
pub(super) fn end(state: &mut State, id: &EventId, ending: Option<Ending>) {
    let now = state.now;
    let is_outlived = state.open_event(id).is_some_and(|event| is_outlived(state, event));
    let Ok(event) = open(state, id) else { return };
    let happened = event.may_have_happened() && !is_outlived;
    event.ending = ending.or(Some(if happened { Ending::Completed } else { Ending::Cancelled }));
    let deleted: Vec<VmName> = if event.deletes_vms() { event.announcement.resources.clone() } else { Vec::new() };
    let owes = owes(state, id);
    let Ok(event) = open(state, id) else { return };
    enter(event, if owes { Stage::Restoring } else { Stage::Closed }, now);
    for vm in deleted {
        slot_changes::lose(state, &vm);
    }
}

/// A hook of the event runs, or a member has yet to be restored, or to say that it is ready, on its account.
fn owes(state: &State, id: &EventId) -> bool {
    let Some(event) = state.open_event(id).filter(|_| !is_busy(state, id)) else { return true };
    let is_of = |member: &Member, slot: &Slot| {
        let took_part = |attempt: &Attempt| attempt.member == *member && attempt.stint >= slot.first_stint;
        slot.by == *id || slot.events.contains(id) || event.attempts.iter().any(took_part)
    };
    let is_awaited = |member: &Member, slot: &Slot| {
        (slot.needs_restore && is_of(member, slot))
            || (slot.by == *id && restoring::is_awaited(state, event, member, slot))
    };
    state.slots.iter().any(|(member, slot)| slot.state != SlotState::Gone && is_awaited(member, slot))
}

fn is_busy(state: &State, id: &EventId) -> bool {
    state.open_event(id).is_some_and(|event| event.attempts.iter().any(|attempt| attempt.outcome.is_none()))
}

/// A deletion that nobody saw begin was cancelled, approved or not, where a VM that it names says itself that it is gone.
fn is_outlived(state: &State, event: &Event) -> bool {
    let id = &event.announcement.id;
    let survives = |vm: &VmName| event.affects(vm) && state.replicas.get(vm).is_some_and(|replica| replica.cleared(id));
    let has_begun = event.entered_at(Stage::Started).is_some();
    event.announcement.kind == Kind::Terminate && !has_begun && event.seen_by.iter().any(survives)
}

/// Moves the events that are over and whose members are back to the history. True when there were any.
pub(super) fn close_restored(state: &mut State) -> bool {
    let now = state.now;
    let over = state.open_events().filter(|event| event.stage().is_over());
    let over: Vec<EventId> = over.map(|event| event.announcement.id.clone()).collect();
    // One that was cancelled and is listed again is another one; its members are restored on account of that.
    let is_back = |id: &EventId| {
        let may_come_back = state.open_event(id).is_some_and(Event::may_come_back);
        may_come_back && state.is_listed(id) && !is_busy(state, id)
    };
    let closed: Vec<EventId> = over.into_iter().filter(|id| !owes(state, id) || is_back(id)).collect();
    for id in &closed {
        let Some(mut event) = state.open.remove(id) else { continue };
        enter(Arc::make_mut(&mut event), Stage::Closed, now);
        state.history.push_back(event);
    }
    if closed.is_empty() {
        return false;
    }
    while state.history.len() > HISTORY_LIMIT {
        state.history.pop_front();
    }
    let is_old = |event: &Event| event.entered_at(Stage::Closed).is_some_and(|at| now.since(at) > HISTORY_AGE);
    while state.closed_events().next().is_some_and(is_old) {
        state.history.pop_front();
    }
    take_up(state);
    true
}

pub(super) fn forget(state: &mut State, id: &EventId) -> Applied {
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if event.is_drill() {
        return Err(Ignored::NotDue);
    }
    if event.stage().is_over() {
        return Err(Ignored::Repeated);
    }
    if state.is_listed(id) {
        return Err(Ignored::NotNow);
    }
    end(state, id, Some(Ending::Forgotten));
    Ok(())
}

/// Takes up what is listed but not open: an event listed again while it was put back, or one for which there was no
/// room. No report will say so once more.
pub(super) fn take_up(state: &mut State) {
    let missed: Vec<(VmName, Announcement)> =
        listed_elsewhere(state).map(|(name, announcement)| (name.clone(), announcement.clone())).collect();
    for (name, announcement) in missed {
        sight(state, &name, &announcement);
    }
}

/// What current documents list and is not open.
fn listed_elsewhere(state: &State) -> impl Iterator<Item = (&VmName, &Announcement)> {
    let current = state.replicas.iter().filter(|(_, replica)| replica.discounted.is_none());
    let listed = current.flat_map(|(name, replica)| {
        replica.document.iter().flat_map(|document| &document.events).map(move |announcement| (name, announcement))
    });
    listed.filter(|(_, announcement)| !state.open.contains_key(&announcement.id))
}

/// A closed event that is listed again was given up too early or stands in an old document of a slow endpoint.
fn is_to_come(state: &State, announcement: &Announcement) -> bool {
    let mut closed = state.closed_events().rev();
    let closed = closed.find(|event| event.announcement.id == announcement.id && !event.is_drill());
    closed.is_none_or(Event::may_come_back)
}

/// The listed events for which there is no room: nobody prepares for them or approves them before another one closes.
pub fn beyond_the_limit(state: &State) -> BTreeSet<&EventId> {
    if state.open.len() < OPEN_LIMIT {
        return BTreeSet::new();
    }
    let beyond = listed_elsewhere(state).filter(|(_, announcement)| is_to_come(state, announcement));
    beyond.map(|(_, announcement)| &announcement.id).collect()
}

pub(super) fn enter(event: &mut Event, stage: Stage, now: Timestamp) {
    if event.stage().may_become(stage) {
        event.entered.push((stage, now));
        event.revision += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::announced;
    use super::*;

    #[test]
    fn the_furthest_status_counts_of_those_whose_word_does() {
        let mut state = State::default();
        let id = EventId::new("e1");
        for (name, status) in [("a", Status::Scheduled), ("b", Status::Started), ("c", Status::Scheduled)] {
            let name = VmName::new(name);
            state.replicas.entry(name.clone()).or_default();
            report(&mut state, &name, 0, &Document::new([announced("e1", status)].into())).unwrap();
        }
        let mut seen = Vec::new();
        for silent in ["b", "a", "c"] {
            seen.push(state.observed_status(&id).cloned());
            discount(&mut state, &VmName::new(silent)).unwrap();
        }
        seen.push(state.observed_status(&id).cloned());
        assert_eq!(seen, [Some(Status::Started), Some(Status::Scheduled), Some(Status::Scheduled), None]);
    }
}
