//! One element of `Events` becomes an announcement.
//!
//! Refuses an element whose id or resources cannot be read, because an event without one of its resources would be
//! approved over that machine's head. Everything else that is odd or missing becomes "unknown", which the machine treats
//! with the most care.

use core::time::Duration;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::date;
use allclear_core::model::bytes::ANNOUNCEMENT_BYTES;
use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
use allclear_core::model::id::{EventId, VmName};

/// Resources of one event; a placement group holds up to 100 VMs.
pub const MAX_RESOURCES: usize = 1000;

/// Bytes of an id or a name. A longer one is refused: cut, it could be equal to another.
const MAX_NAME: usize = 256;
/// Bytes of a type, status, source or resource type that are kept; no known one is nearly as long.
const MAX_WORD: usize = 256;
/// Bytes of a description that are kept; it is only shown.
const MAX_DESCRIPTION: usize = 1024;
/// Seconds. Longer than a hundred years is no estimate.
const MAX_DURATION: u64 = u32::MAX as u64;

/// The announcement, or what is wrong with the element.
pub(super) fn read(element: &Value) -> Result<Announcement, &'static str> {
    let Value::Object(fields) = element else {
        return Err("it is not an object");
    };
    let announcement = Announcement {
        id: id(fields)?,
        status: Status::parse(&word(fields, "EventStatus")),
        kind: EventType::parse(&word(fields, "EventType")),
        source: Source::parse(&word(fields, "EventSource")),
        resource_type: word(fields, "ResourceType"),
        resources: resources(fields)?,
        not_before: not_before(fields),
        description: shown(text(fields, "Description"), MAX_DESCRIPTION),
        duration: fields.get("DurationInSeconds").and_then(duration),
    };
    if announcement.bytes() > ANNOUNCEMENT_BYTES {
        return Err("the names of its resources are longer than 64 KiB together");
    }
    Ok(announcement)
}

/// The id of an element of which nothing else may be readable.
pub(super) fn id_of(element: &Value) -> Result<EventId, &'static str> {
    element.as_object().ok_or("it is not an object").and_then(id)
}

fn id(fields: &Map<String, Value>) -> Result<EventId, &'static str> {
    let Some(Value::String(id)) = fields.get("EventId") else {
        return Err("its EventId is missing or not text");
    };
    if id.trim().is_empty() {
        return Err("its EventId is blank");
    }
    if id.len() > MAX_NAME {
        return Err("its EventId is longer than 256 bytes");
    }
    Ok(EventId::new(id))
}

fn resources(fields: &Map<String, Value>) -> Result<Vec<VmName>, &'static str> {
    let names = match fields.get("Resources") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(names)) => names,
        Some(_) => return Err("its Resources are not an array"),
    };
    if names.len() > MAX_RESOURCES {
        return Err("it names more than 1000 resources");
    }
    let mut read: Vec<VmName> = names.iter().map(resource).collect::<Result<_, _>>()?;
    let mut seen = BTreeSet::new();
    read.retain(|name| seen.insert(name.clone()));
    Ok(read)
}

fn resource(name: &Value) -> Result<VmName, &'static str> {
    match name {
        Value::String(name) if name.len() > MAX_NAME => Err("a resource name is longer than 256 bytes"),
        Value::String(name) => Ok(VmName::new(name)),
        _ => Err("a resource name is not text"),
    }
}

/// A started event that still carries a date keeps it; the status says that it has begun.
fn not_before(fields: &Map<String, Value>) -> NotBefore {
    date::read(text(fields, "NotBefore")).map_or(NotBefore::Unknown, NotBefore::At)
}

/// Seconds as a number or digits; -1 is the platform's "unknown", 0 its "no interruption".
fn duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(number) => number.as_u64(),
        // `parse` alone would take a plus sign as well.
        Value::String(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    };
    seconds.filter(|seconds| *seconds <= MAX_DURATION).map(Duration::from_secs)
}

fn word(fields: &Map<String, Value>, key: &str) -> String {
    cut(text(fields, key), MAX_WORD)
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// At most so many bytes, cut between characters.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

/// The same for text that is only shown: nothing in it may steer a terminal or begin a line of a log.
pub(super) fn shown(text: &str, bytes: usize) -> String {
    cut(text, bytes).replace(char::is_control, " ")
}
