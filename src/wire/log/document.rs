//! Documents and announcements. The platform's words are stored as words, so that unknown words survive.

use super::pb;
use super::stored::{Stored, restored};
use super::tables::{message, store, take};
use super::undecodable::Undecodable;
use allclear_core::model::document::{Announcement, Document, NotBefore};
use allclear_core::model::time::Timestamp;

impl Stored for Document {
    type Message = pb::Document;

    fn store(&self) -> pb::Document {
        pb::Document { events: self.events.store() }
    }

    fn restore(message: pb::Document) -> Result<Self, Undecodable> {
        restored(message.events, "events").map(Self::new)
    }
}

message!(Announcement as Announcement {
    id: event_id,
    status: status,
    kind: kind,
    source: source,
    resource_type: resource_type,
    resources: resources,
    not_before: not_before_unix_ms,
    description: description,
    duration: duration_ms,
});

impl Stored for NotBefore {
    type Message = Option<i64>;

    fn store(&self) -> Option<i64> {
        match self {
            Self::At(at) => Some(at.store()),
            Self::Unknown => None,
        }
    }

    fn restore(unix_ms: Option<i64>) -> Result<Self, Undecodable> {
        Ok(unix_ms.map_or(Self::Unknown, |at| Self::At(Timestamp(at))))
    }
}
