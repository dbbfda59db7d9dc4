//! Drills: made-up events that run through the real hooks and are never approved. A drill ends at once when a real
//! event needs preparation, and its members are restored.

use crate::apply::access::Applied;
use crate::apply::event_end;
use crate::model::command::{Rejection, bounded};
use crate::model::document::{Announcement, NotBefore, Status};
use crate::model::drill::{Drill, Mode, PREFIX};
use crate::model::event::{Ending, Event};
use crate::model::id::{EventId, VmName};
use crate::model::state::State;
use crate::schedule::drill::is_finished;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Event {
    /// Whether this is a real event that affects a replica of this cluster, or ran hooks: a drill yields to such an
    /// event.
    fn is_pressing(&self, state: &State) -> bool {
        !self.is_drill() && (self.announcement.concerns(state) || !self.attempts.is_empty())
    }
}

/// Begins a drill: a single drill at a time, and only without pressing real events.
pub(crate) fn begin_drill(state: &mut State, by: &VmName, announced: &Announcement, mode: Mode, who: &str) -> Applied {
    let now = state.now;
    if !announced.id.as_str().starts_with(PREFIX) || state.is_listed(&announced.id) {
        return Err(Rejection::NotYours);
    }
    if state.event(&announced.id).is_some() {
        return Err(Rejection::Repeated);
    }
    if !announced.concerns(state) {
        return Err(Rejection::UnknownReplica);
    }
    if state.open_events().any(|event| event.is_drill() || event.is_pressing(state)) {
        return Err(Rejection::NotNow);
    }
    let announcement = Announcement {
        status: Status::Scheduled,
        // A drill with a start time in the past is rehearsed with the notice of the event type.
        not_before: match announced.not_before {
            NotBefore::At(at) if at > now => announced.not_before,
            NotBefore::At(_) | NotBefore::Unknown => NotBefore::Unknown,
        },
        ..announced.clone()
    };
    let event = Event {
        seen_by: BTreeSet::new(),
        drill: Some(Drill { mode, who: bounded(who) }),
        ..Event::first_seen_as(announcement, by.clone(), now)
    };
    state.open.insert(announced.id.clone(), event.into());
    Ok(())
}

/// Ends a drill: the leader when all preparation is settled, or an operator at any time.
pub(crate) fn end_drill(state: &mut State, id: &EventId) -> Applied {
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if !event.is_drill() {
        return Err(Rejection::NotDue);
    }
    if event.stage().is_over() {
        return Err(Rejection::Repeated);
    }
    let ending = if is_finished(state, event, state.now) { Ending::Drilled } else { Ending::Interrupted };
    event_end::end_event(state, id, Some(ending));
    Ok(())
}

/// Ends drills that run beside a real event.
pub(crate) fn stop_drill_for_event(state: &mut State) {
    let under_way = || state.open_events().filter(|event| !event.stage().is_over());
    let drills = under_way().filter(|event| event.is_drill());
    let drills: Vec<EventId> = drills.map(|event| event.announcement.id.clone()).collect();
    if drills.is_empty() || !under_way().any(|event| event.is_pressing(state)) {
        return;
    }
    for id in drills {
        event_end::end_event(state, &id, Some(Ending::Interrupted));
    }
}
