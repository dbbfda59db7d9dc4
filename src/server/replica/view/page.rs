//! All kept events in pages that fit a message. No event is missing or twice when events close meanwhile.

use allclear_core::model::event::Event;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_wire::pb::allclear::operator::v1 as shown;
use allclear_wire::size;

const MOST_EVENTS: usize = 100;
/// The size of a full page; a message may be four times as large.
const ENOUGH_BYTES: usize = 1 << 20;

/// The event before a page: events are ordered by the time of the announcement, then by id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PageStart(Option<(i64, String)>);

impl PageStart {
    /// Reads a place; `None` for a word not made by a page. The empty word is the place before all events.
    pub fn read(word: &str) -> Option<Self> {
        if word.is_empty() {
            return Some(Self(None));
        }
        let (at, id) = word.split_once('/')?;
        Some(Self(Some((at.parse().ok()?, id.to_ascii_lowercase()))))
    }

    fn of(event: &Event) -> Self {
        Self(Some((event.first_seen().0, event.announcement.id.to_string().to_ascii_lowercase())))
    }

    fn word(&self) -> Option<String> {
        self.0.as_ref().map(|(at, id)| format!("{at}/{id}"))
    }
}

pub(super) fn of(
    state: &State,
    from: &PageStart,
    since: Option<Timestamp>,
    shown: impl Fn(&Event) -> shown::Event,
) -> shown::EventList {
    let was_open = |event: &Event, since| event.entered_at(Stage::Closed).is_none_or(|closed| closed >= since);
    let is_wanted = |event: &&Event| since.is_none_or(|since| was_open(event, since));
    let kept = state.closed_events().chain(state.open_events()).filter(is_wanted);
    let mut places: Vec<(PageStart, &Event)> = kept.map(|event| (PageStart::of(event), event)).collect();
    places.retain(|(place, _)| place > from);
    places.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut events, mut bytes) = (Vec::new(), 0);
    for (place, event) in &places {
        let told = shown(event);
        bytes += size(&told);
        events.push(told);
        if events.len() == MOST_EVENTS || bytes >= ENOUGH_BYTES {
            let next = place.word().filter(|_| events.len() < places.len());
            return shown::EventList { events, next };
        }
    }
    shown::EventList { events, next: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_and_read() {
        for place in [PageStart(None), PageStart(Some((1_700_000_000_000, "a/b".into())))] {
            assert_eq!(PageStart::read(&place.word().unwrap_or_default()), Some(place));
        }
        assert!(PageStart::read("rubbish").is_none() && PageStart::read("x/y").is_none());
        assert!(PageStart(None) < PageStart(Some((i64::MIN, String::new()))));
    }
}
