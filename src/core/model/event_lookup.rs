//! The choice of an event by a person, who writes the id or its beginning.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::event::Event;
use super::id::EventId;
use super::state::State;

/// A beginning of an id has at least this number of letters: a shorter text is a slip of the hand.
const SHORTEST_BEGINNING: usize = 4;
/// The maximal number of events that an error names.
const MOST_NAMED: usize = 5;

/// The reason why a text selects no event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotSelected {
    /// No event has this id, or an id with this beginning.
    Unknown { given: String },
    /// Several ids have this beginning.
    Ambiguous { given: String, events: Vec<EventId> },
}

impl fmt::Display for NotSelected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { given } if given.len() < SHORTEST_BEGINNING => {
                write!(f, "{given:?} is too short for an event: write at least {SHORTEST_BEGINNING} letters of the id")
            }
            Self::Unknown { given } => {
                write!(f, "no event {given:?} is known here; `allclear events` lists the known events")
            }
            Self::Ambiguous { given, events } => {
                let named: Vec<String> = events.iter().take(MOST_NAMED).map(ToString::to_string).collect();
                let more = if events.len() > MOST_NAMED { " and others" } else { "" };
                write!(
                    f,
                    "{} events begin with {given:?}: {}{more}; write more of the id",
                    events.len(),
                    named.join(", ")
                )
            }
        }
    }
}

impl State {
    /// The event with this id, or the only event with this beginning of an id: among the open events, or else among the
    /// closed events.
    pub fn select_event(&self, given: &str) -> Result<&Event, NotSelected> {
        let id = EventId::new(given);
        if let Some(event) = self.event(&id) {
            return Ok(event);
        }
        let unknown = || NotSelected::Unknown { given: given.to_owned() };
        if id.as_str().len() < SHORTEST_BEGINNING {
            return Err(unknown());
        }
        let fits = |event: &&Event| event.announcement.id.as_str().starts_with(id.as_str());
        let mut found: Vec<&Event> = self.open_events().filter(fits).collect();
        if found.is_empty() {
            found = self.closed_events().rev().filter(fits).collect();
            found.sort_by(|one, other| one.announcement.id.cmp(&other.announcement.id));
            found.dedup_by(|later, first| later.announcement.id == first.announcement.id);
        }
        match found.as_slice() {
            [event] => Ok(event),
            [] => Err(unknown()),
            several => {
                let events = several.iter().map(|event| event.announcement.id.clone()).collect();
                Err(NotSelected::Ambiguous { given: given.to_owned(), events })
            }
        }
    }
}
