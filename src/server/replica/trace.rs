//! Trace ids of events and of their attempts (W3C Trace Context). The ids are computed from the log alone, so every
//! replica has the same ids, also after a restart.
//!
//! The computation never changes: otherwise half of a trace would have other ids.

use core::fmt;

use ring::digest::{Context, SHA256};

use allclear_core::model::event::Event;
use allclear_core::model::id::AttemptId;
use allclear_core::model::time::Timestamp;

/// An id of `N` bytes, shown in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id<const N: usize>(pub [u8; N]);

/// The id of an event of a cluster.
pub type TraceId = Id<16>;

/// The id of an action for the event, or of a wait.
pub type SpanId = Id<8>;

impl TraceId {
    /// The trace id of the event. An event announced again under the same id has another trace id, by the time of the
    /// first sight.
    pub fn of(cluster: &str, event: &Event) -> Self {
        let Timestamp(first_seen) = event.first_seen();
        let id = event.announcement.id.as_str().to_ascii_lowercase();
        Self(made_of(&[b"event", cluster.as_bytes(), id.as_bytes(), &first_seen.to_be_bytes()]))
    }

    pub fn span(self, what: &str) -> SpanId {
        Id(made_of(&[b"span", &self.0, what.as_bytes()]))
    }

    /// The span of a hook run, or of a claim.
    pub fn attempt(self, AttemptId(number): AttemptId) -> SpanId {
        self.span(&format!("attempt {number}"))
    }

    /// The `traceparent` for a hook run, which makes the hook's own spans part of the event's trace.
    pub fn parent(self, attempt: AttemptId) -> String {
        format!("00-{self}-{}-01", self.attempt(attempt))
    }
}

/// Hashes each part behind the length of the part, which keeps different lists of parts distinct.
fn made_of<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut id = [0; N];
    id.copy_from_slice(&hash.finish().as_ref()[..N]);
    id
}

impl<const N: usize> fmt::Display for Id<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use allclear_core::model::id::{EventId, VmName};

    fn event(id: &str, first_seen: i64) -> Event {
        let announcement = Announcement {
            id: EventId::new(id),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::User,
            resource_type: "VirtualMachine".into(),
            resources: vec![VmName::new("db-0")],
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        };
        Event::first_seen_as(announcement, VmName::new("db-0"), Timestamp(first_seen))
    }

    #[test]
    fn the_ids_are_these_for_ever() {
        let trace = TraceId::of("orders", &event("C7061BAC-AFDC-4513-B24B-AA5F13A16123", 1_649_716_018_120));
        assert_eq!(trace.parent(AttemptId(7)), "00-8530eff099c1794bf205941226b5a821-9f98125b2e3bd5c8-01");
        assert_eq!(trace.span("event").to_string(), "8326ceee3f1db030");
    }

    #[test]
    fn nothing_else_has_the_ids_of_an_event() {
        let one = TraceId::of("orders", &event("E-1", 1));
        assert_eq!(one, TraceId::of("orders", &event("e-1", 1)), "the case of an id means nothing");
        for other in [("other", "E-1", 1), ("orders", "E-2", 1), ("orders", "E-1", 2), ("ordersE", "-1", 1)] {
            assert_ne!(one, TraceId::of(other.0, &event(other.1, other.2)), "{other:?}");
        }
        assert_ne!(one.attempt(AttemptId(1)), one.attempt(AttemptId(2)));
        assert_ne!(one.attempt(AttemptId(1)), TraceId::of("orders", &event("E-2", 1)).attempt(AttemptId(1)));
    }
}
