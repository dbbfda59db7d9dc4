//! The part of `apply` that follows the documents: events appear, move on, end and are closed.

use crate::apply::access::{Applied, open, registered};
use crate::apply::slots;
use crate::model::attempt::Attempt;
use crate::model::bytes::{ANNOUNCEMENT_BYTES, HISTORY_BYTES};
use crate::model::command::Rejection;
use crate::model::document::{Announcement, Document, EventType, NotBefore, Status};
use crate::model::event::{Ending, Event};
use crate::model::id::{EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::{HISTORY_AGE, HISTORY_LIMIT, OPEN_LIMIT, OPEN_LIMIT_OF_OTHERS, State};
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use crate::schedule::restore;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(crate) fn report_document(state: &mut State, by: &VmName, after: u64, document: &Document) -> Applied {
    let replica = registered(state, by)?;
    if replica.reports != after {
        return Err(Rejection::OutOfOrder);
    }
    if !state.takes(document) {
        return Err(Rejection::TooManyEvents);
    }
    let replica = registered(state, by)?;
    replica.reports += 1;
    let was_current = replica.stale_since.take().is_none();
    let before = replica.document.replace(document.clone()).filter(|_| was_current).unwrap_or_default();
    for announcement in &document.events {
        // Most of a document is known, and says nothing new of what is open.
        let is_known = before.get(&announcement.id) == Some(announcement);
        let is_seen = state.open_event(&announcement.id).is_some_and(|event| event.seen_by.contains(by));
        if !is_known || !is_seen {
            apply_announcement(state, by, &announcement.id);
        }
    }
    for gone in before.events.iter().filter(|before| document.get(&before.id).is_none()) {
        refresh_announcement(state, &gone.id);
    }
    reevaluate(state);
    Ok(())
}

/// A current document of this replica lists the event.
fn apply_announcement(state: &mut State, by: &VmName, id: &EventId) {
    let now = state.now;
    if let Some(event) = state.open.get_mut(id) {
        if !event.is_drill() && !event.seen_by.contains(by) {
            let event = Arc::make_mut(event);
            event.seen_by.insert(by.clone());
            event.revision += 1;
        }
        refresh_announcement(state, id);
        return;
    }
    if state.open.len() >= OPEN_LIMIT {
        return;
    }
    let Some(shown) = state.shown(id).filter(|shown| has_room(state, shown)) else { return };
    let event =
        reopened(state, id).unwrap_or_else(|| Event::first_seen_as(plausible(shown, now), by.clone(), now).into());
    state.open.insert(id.clone(), event);
    if let Ok(event) = open(state, id) {
        event.seen_by.insert(by.clone());
        return_to_scheduled(event, now);
    }
    refresh_announcement(state, id);
}

/// The notice had ended before anybody saw the event: the platform's time is not the cluster's, or the event is late.
/// Nothing is counted from such a time (`members.md` 5).
pub fn is_implausible(shown: &Announcement, first_seen: Timestamp) -> bool {
    let has_passed = matches!(shown.not_before, NotBefore::At(at) if at < first_seen);
    has_passed && shown.status != Status::Started
}

fn plausible(shown: Announcement, first_seen: Timestamp) -> Announcement {
    if is_implausible(&shown, first_seen) { Announcement { not_before: NotBefore::Unknown, ..shown } } else { shown }
}

/// The last closed event of this id, out of the history. One that has come and gone too often begins anew.
pub(crate) fn reopened(state: &mut State, id: &EventId) -> Option<Arc<Event>> {
    let place = state.history.iter().rposition(|event| event.announcement.id == *id && !event.is_drill())?;
    state.history.get(place).filter(|event| event.may_return())?;
    state.history.remove(place)
}

/// Takes over what all current documents together show of an open event.
pub(crate) fn refresh_announcement(state: &mut State, id: &EventId) {
    let now = state.now;
    let Some(event) = state.open_event(id).filter(|event| !event.is_drill()) else { return };
    let Some(shown) = state.shown(id).map(|shown| plausible(shown, event.first_seen())) else { return };
    let known = &event.announcement;
    let shown = Announcement {
        // A started event's NotBefore is blank; the last one announced tells why it started.
        not_before: match shown.not_before {
            NotBefore::Unknown => known.not_before,
            at @ NotBefore::At(_) => at,
        },
        ..shown
    };
    // What is missing or cannot be read stays what it was.
    let shown = if shown.status.says_nothing() && !known.status.says_nothing() {
        state.fitted(Announcement { resources: shown.joined_with(known).resources, ..known.clone() })
    } else {
        shown
    };
    if shown == *known {
        return;
    }
    let is_other = !shown.is_decided_like(known);
    let is_treated_otherwise = shown.kind != known.kind || shown.source != known.source;
    let Ok(event) = open(state, id) else { return };
    let has_grown = !shown.names_no_other(&event.announcement);
    if (has_grown || is_treated_otherwise) && event.stage() == Stage::Approved {
        event.reopened = Some(now);
    }
    event.announcement = shown;
    event.revision += 1;
    if is_other {
        event.decision = event.revision;
    }
    if is_treated_otherwise && event.stage() < Stage::Started {
        (event.treatment, event.treated) = (None, None);
    }
}

pub(crate) fn mark_document_stale(state: &mut State, replica: &VmName) -> Applied {
    let now = state.now;
    let replica = registered(state, replica)?;
    if replica.stale_since.is_some() {
        return Err(Rejection::Repeated);
    }
    replica.stale_since = Some(now);
    let listed = replica.document.clone().unwrap_or_default();
    for announcement in &listed.events {
        refresh_announcement(state, &announcement.id);
    }
    reevaluate(state);
    Ok(())
}

/// Moves every event to where the current documents say that it is.
pub(crate) fn reevaluate(state: &mut State) {
    let now = state.now;
    let moving = |(id, event): (&EventId, &Arc<Event>)| {
        let status = state.observed_status(id);
        let reached = event.stage();
        let next = match status {
            None if !reached.is_over() && state.is_event_gone(id, &event.seen_by) => Some(Stage::Closed),
            Some(Status::Started) if reached < Stage::Started || reached.is_over() => Some(Stage::Started),
            // Where some say that it is gone, the others may be those that say nothing any more.
            Some(Status::Scheduled) if reached == Stage::Started && event.may_return() && !is_cleared(state, event) => {
                Some(Stage::Preparing)
            }
            Some(_) if reached.is_over() => Some(Stage::Preparing),
            _ => None,
        };
        next.map(|next| (id.clone(), next))
    };
    let due: Vec<_> = state.open.iter().filter(|(_, event)| !event.is_drill()).filter_map(moving).collect();
    for (id, next) in due {
        if next == Stage::Closed {
            end_event(state, &id, None);
        } else if let Ok(event) = open(state, &id) {
            return_to_scheduled(event, now);
            if next == Stage::Started {
                enter_stage(event, Stage::Started, now);
            }
        }
    }
}

/// A current document that listed the event does so no more.
fn is_cleared(state: &State, event: &Event) -> bool {
    let id = &event.announcement.id;
    event.seen_by.iter().any(|name| state.replicas.get(name).is_some_and(|replica| replica.cleared(id)))
}

/// An event that had started or was over is to come again (`members.md` 3, D4 and D5); any other goes on.
pub(crate) fn return_to_scheduled(event: &mut Event, now: Timestamp) {
    if event.stage() < Stage::Started {
        return;
    }
    let may_be_approved = event.may_be_approved();
    event.entered.push((if may_be_approved { Stage::Approved } else { Stage::Preparing }, now));
    event.reopened = may_be_approved.then_some(now);
    event.ending = None;
    event.stuck_since = None;
    event.former_calls.extend(event.last_call.take());
    // One that had started is treated otherwise than one that is to come.
    (event.treatment, event.treated) = (None, None);
    event.revision += 1;
    // What was said of it before it went was said of something else.
    if !may_be_approved {
        event.decision = event.revision;
        event.waivers.clear();
        (event.given_back, event.is_deferred) = (0, false);
    }
}

/// A decision that nobody was told can be held, and one for something else than the event is now is made anew, with what
/// that asks for. One that may have been told is repeated.
pub(crate) fn reconsider(state: &mut State) {
    let now = state.now;
    let is_open = |event: &Event| {
        let is_told = event.has_isolated_approval() || event.reason_to_repeat().is_some();
        event.stage() == Stage::Claimed && event.is_claim_settled(now) && !is_told
    };
    for event in state.open.values_mut().filter(|event| is_open(event)) {
        Arc::make_mut(event).entered.push((Stage::Preparing, now));
    }
}

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

/// A hook of the event runs, or a member has yet to be restored, or to say that it is ready, on its account.
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

/// A deletion that nobody saw begin was cancelled, approved or not, where a VM that it names says itself that it is gone.
fn is_outlived(state: &State, event: &Event) -> bool {
    let id = &event.announcement.id;
    let survives = |vm: &VmName| event.affects(vm) && state.replicas.get(vm).is_some_and(|replica| replica.cleared(id));
    let has_begun = event.entered_at(Stage::Started).is_some();
    event.announcement.kind == EventType::Terminate && !has_begun && event.seen_by.iter().any(survives)
}

/// Moves the events that are over and whose members are back to the history. True when there were any.
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
    reopen_listed(state);
    true
}

/// What concerned nobody of this cluster goes first, and the oldest of it: events that an endpoint makes up push nothing of
/// ours out of the history.
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

/// Takes up what is listed but not open: there was no room for it. No report will say so once more.
pub(crate) fn reopen_listed(state: &mut State) {
    let missed: Vec<(VmName, EventId)> =
        listed_elsewhere(state).map(|(name, listed)| (name.clone(), listed.id.clone())).collect();
    for (name, id) in missed {
        apply_announcement(state, &name, &id);
    }
}

/// A replica is new: what names its VM concerns this cluster, though there was no room for it before.
pub(crate) fn reconsider_for_new_replica(state: &mut State) {
    let is_full = |event: &&Event| event.announcement.bytes() > ANNOUNCEMENT_BYTES / 2;
    let full: Vec<EventId> = state.open_events().filter(is_full).map(|event| event.announcement.id.clone()).collect();
    for id in full {
        refresh_announcement(state, &id);
    }
    reopen_listed(state);
}

/// What current documents list and is not open.
fn listed_elsewhere(state: &State) -> impl Iterator<Item = (&VmName, &Announcement)> {
    let current = state.replicas.iter().filter(|(_, replica)| replica.stale_since.is_none());
    let listed = current.flat_map(|(name, replica)| {
        replica.document.iter().flat_map(|document| &document.events).map(move |announcement| (name, announcement))
    });
    listed.filter(|(_, announcement)| !state.open.contains_key(&announcement.id))
}

/// Those that name nobody of this cluster leave some places free.
fn has_room(state: &State, announcement: &Announcement) -> bool {
    let open = state.open.len();
    open < OPEN_LIMIT_OF_OTHERS || (open < OPEN_LIMIT && announcement.concerns(state))
}

/// The listed events for which there is no room: nobody prepares for them or approves them before another one closes.
pub fn beyond_the_limit(state: &State) -> BTreeSet<&EventId> {
    if state.open.len() < OPEN_LIMIT_OF_OTHERS {
        return BTreeSet::new();
    }
    let beyond = listed_elsewhere(state).filter(|(_, announcement)| !has_room(state, announcement));
    beyond.map(|(_, announcement)| &announcement.id).collect()
}

pub(crate) fn enter_stage(event: &mut Event, stage: Stage, now: Timestamp) {
    if event.stage().may_become(stage) {
        event.entered.push((stage, now));
        event.revision += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::document::tests::announced;

    #[test]
    fn the_furthest_status_counts_of_those_whose_word_does() {
        let mut state = State::default();
        let id = EventId::new("e1");
        for (name, status) in [("a", Status::Scheduled), ("b", Status::Started), ("c", Status::Scheduled)] {
            let name = VmName::new(name);
            state.replicas.entry(name.clone()).or_default();
            report_document(&mut state, &name, 0, &Document::new([announced("e1", status)].into())).unwrap();
        }
        let mut seen = Vec::new();
        for silent in ["b", "a", "c"] {
            seen.push(state.observed_status(&id).cloned());
            mark_document_stale(&mut state, &VmName::new(silent)).unwrap();
        }
        seen.push(state.observed_status(&id).cloned());
        assert_eq!(seen, [Some(Status::Started), Some(Status::Scheduled), Some(Status::Scheduled), None]);
    }
}
