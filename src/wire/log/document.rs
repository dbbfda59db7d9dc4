//! Documents and announcements. The platform's words are stored as words, so that unknown ones survive.

use super::pb;
use super::stored::{Stored, named, take};
use super::undecodable::Undecodable;
use crate::machine::document::{Announcement, Document, Kind, NotBefore, Source, Status};
use crate::machine::time::Timestamp;

impl Stored for Document {
    type Message = pb::Document;

    fn store(&self) -> pb::Document {
        pb::Document { events: self.events.store() }
    }

    fn restore(message: pb::Document) -> Result<Self, Undecodable> {
        Ok(Self::new(take!(message.events)))
    }
}

impl Stored for Announcement {
    type Message = pb::Announcement;

    fn store(&self) -> pb::Announcement {
        pb::Announcement {
            event_id: self.id.store(),
            status: self.status.as_word().into(),
            kind: self.kind.as_word().into(),
            source: self.source.as_word().into(),
            resource_type: self.resource_type.clone(),
            resources: self.resources.store(),
            not_before_unix_ms: self.not_before.store(),
            description: self.description.clone(),
            duration_ms: self.duration.store(),
        }
    }

    fn restore(message: pb::Announcement) -> Result<Self, Undecodable> {
        Ok(Self {
            id: take!(message.event_id),
            status: Status::from_word(&message.status),
            kind: Kind::from_word(&message.kind),
            source: Source::from_word(&message.source),
            resource_type: message.resource_type,
            resources: take!(message.resources),
            not_before: take!(message.not_before_unix_ms),
            description: message.description,
            duration: take!(message.duration_ms),
        })
    }
}

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
