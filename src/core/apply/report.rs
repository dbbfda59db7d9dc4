//! Follows the documents that replicas report: events appear, change, and move to another stage.

use crate::apply::access::{Applied, open, registered};
use crate::apply::event_end::end_event;
use crate::apply::stages::{enter_stage, return_to_scheduled};
use crate::model::bytes::ANNOUNCEMENT_BYTES;
use crate::model::command::Rejection;
use crate::model::document::{Announcement, Document, NotBefore, Status};
use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::{OPEN_LIMIT, OPEN_LIMIT_OF_OTHERS, State};
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
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
        // Most announcements of a document are known already, without a change for open events.
        let is_known = before.get(&announcement.id) == Some(announcement);
        let is_seen = state.open_event(&announcement.id).is_some_and(|event| event.seen_by.contains(by));
        if !is_known || !is_seen {
            apply_announcement(state, by, &announcement.id);
        }
    }
    for gone in before.events.iter().filter(|before| document.get(&before.id).is_none()) {
        refresh_announcement(state, &gone.id);
    }
    move_events_by_documents(state);
    Ok(())
}

/// Applies the announcement of an event that a current document of this replica lists.
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

/// The end of a notice that had ended before the event was first seen: platform time differs from cluster time, or the
/// event is late. Nothing is counted from such a time (`SPEC.md` 2).
pub fn implausible_notice_end(shown: &Announcement, first_seen: Timestamp) -> Option<Timestamp> {
    match shown.not_before {
        NotBefore::At(at) if at < first_seen && shown.status != Status::Started => Some(at),
        NotBefore::At(_) | NotBefore::Unknown => None,
    }
}

fn plausible(shown: Announcement, first_seen: Timestamp) -> Announcement {
    if implausible_notice_end(&shown, first_seen).is_some() {
        Announcement { not_before: NotBefore::Unknown, ..shown }
    } else {
        shown
    }
}

/// The last closed event of this id, removed from the history. An event that came back too often begins anew.
pub(crate) fn reopened(state: &mut State, id: &EventId) -> Option<Arc<Event>> {
    let place = state.history.iter().rposition(|event| event.announcement.id == *id && !event.is_drill())?;
    state.history.get(place).filter(|event| event.may_return())?;
    state.history.remove(place)
}

/// Updates an open event from the current documents of all replicas.
pub(crate) fn refresh_announcement(state: &mut State, id: &EventId) {
    let now = state.now;
    let Some(event) = state.open_event(id).filter(|event| !event.is_drill()) else { return };
    let Some(shown) = state.shown(id).map(|shown| plausible(shown, event.first_seen())) else { return };
    let known = &event.announcement;
    let shown = Announcement {
        // A started event's `NotBefore` is blank; the last announced value explains the start.
        not_before: match shown.not_before {
            NotBefore::Unknown => known.not_before,
            at @ NotBefore::At(_) => at,
        },
        ..shown
    };
    // A missing or unreadable status leaves the announcement as before.
    let shown = if shown.status.says_nothing() && !known.status.says_nothing() {
        state.fitted(Announcement { resources: shown.joined_with(known).resources, ..known.clone() })
    } else {
        shown
    };
    if shown == *known {
        return;
    }
    let is_other = !shown.is_decided_like(known);
    let is_of_another_kind = shown.kind != known.kind || shown.source != known.source;
    // Policy treats events without a VM of this cluster as foreign.
    let is_treated_otherwise = is_of_another_kind || shown.concerns(state) != known.concerns(state);
    let Ok(event) = open(state, id) else { return };
    let has_grown = !shown.names_no_other(&event.announcement);
    if (has_grown || is_of_another_kind) && event.stage() == Stage::Approved {
        event.reopened = Some(now);
    }
    event.announcement = shown;
    event.revision += 1;
    if is_other {
        event.decided_at_revision = event.revision;
    }
    if is_treated_otherwise {
        choose_treatment_again(event, now);
    }
}

/// Lets policy choose again for events that are foreign without this replica: the replica registered, or left. A
/// preparation that policy chose before the replica registered goes on.
pub(crate) fn reconsider_events_of(state: &mut State, name: &VmName) {
    let now = state.now;
    let is_registered = state.replicas.contains_key(name);
    let is_other = |event: &Event| {
        let names_another = event.announcement.resources.iter().any(|vm| vm != name && state.replicas.contains_key(vm));
        let is_prepared = event.treatment.as_ref().is_some_and(|treatment| treatment.action == Action::Prepare);
        event.affects(name) && !names_another && !(is_prepared && is_registered)
    };
    let others = state.open_events().filter(|event| is_other(event));
    for id in others.map(|event| event.announcement.id.clone()).collect::<Vec<_>>() {
        if let Ok(event) = open(state, &id) {
            if is_registered && event.stage() == Stage::Approved {
                event.reopened = Some(now);
            }
            choose_treatment_again(event, now);
        }
    }
}

/// Lets policy choose the treatment of an event again: other hooks may be required now.
fn choose_treatment_again(event: &mut Event, now: Timestamp) {
    if event.stage() < Stage::Started && !event.is_drill() {
        event.restart_budget(now);
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
    move_events_by_documents(state);
    Ok(())
}

/// Moves every event to the stage that the current documents show.
pub(crate) fn move_events_by_documents(state: &mut State) {
    let now = state.now;
    let moving = |(id, event): (&EventId, &Arc<Event>)| {
        let status = state.observed_status(id);
        let reached = event.stage();
        let next = match status {
            None if !reached.is_over() && state.is_event_gone(id, &event.seen_by) => Some(Stage::Closed),
            Some(Status::Started) if reached < Stage::Started || reached.is_over() => Some(Stage::Started),
            // If some documents no longer list the event, the other documents may be outdated.
            Some(Status::Scheduled)
                if reached == Stage::Started && event.may_return() && !is_no_longer_listed(state, event) =>
            {
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

/// Whether a current document that listed the event no longer lists the event.
fn is_no_longer_listed(state: &State, event: &Event) -> bool {
    let id = &event.announcement.id;
    event.seen_by.iter().any(|name| state.replicas.get(name).is_some_and(|replica| replica.no_longer_lists(id)))
}

/// Opens listed events that were not opened for lack of room. No later report would repeat the announcement.
pub(crate) fn reopen_listed(state: &mut State) {
    let missed: Vec<(VmName, EventId)> =
        listed_elsewhere(state).map(|(name, listed)| (name.clone(), listed.id.clone())).collect();
    for (name, id) in missed {
        apply_announcement(state, &name, &id);
    }
}

/// Reconsiders events for a new replica: an event for its VM concerns this cluster now, though the event was foreign, or
/// there was no room, before.
pub(crate) fn reconsider_for_new_replica(state: &mut State, name: &VmName) {
    reconsider_events_of(state, name);
    let is_full = |event: &&Event| event.announcement.bytes() > ANNOUNCEMENT_BYTES / 2;
    let full: Vec<EventId> = state.open_events().filter(is_full).map(|event| event.announcement.id.clone()).collect();
    for id in full {
        refresh_announcement(state, &id);
    }
    reopen_listed(state);
}

/// Announcements of current documents without an open event.
fn listed_elsewhere(state: &State) -> impl Iterator<Item = (&VmName, &Announcement)> {
    let current = state.replicas.iter().filter(|(_, replica)| replica.stale_since.is_none());
    let listed = current.flat_map(|(name, replica)| {
        replica.document.iter().flat_map(|document| &document.events).map(move |announcement| (name, announcement))
    });
    listed.filter(|(_, announcement)| !state.open.contains_key(&announcement.id))
}

/// Events without replicas of this cluster leave some of the limit free.
fn has_room(state: &State, announcement: &Announcement) -> bool {
    let open = state.open.len();
    open < OPEN_LIMIT_OF_OTHERS || (open < OPEN_LIMIT && announcement.concerns(state))
}

/// Listed events beyond the limit: no preparation and no approval before another event closes.
pub fn beyond_the_limit(state: &State) -> BTreeSet<&EventId> {
    if state.open.len() < OPEN_LIMIT_OF_OTHERS {
        return BTreeSet::new();
    }
    let beyond = listed_elsewhere(state).filter(|(_, announcement)| !has_room(state, announcement));
    beyond.map(|(_, announcement)| &announcement.id).collect()
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
