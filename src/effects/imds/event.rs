//! Converts one element of `Events` to an announcement.
//!
//! Rejects an element with an unreadable id or resources, because an event without one of its resources would be
//! approved with no regard to the missing machine. Any other unusual or missing value becomes "unknown", which the core
//! treats with the most care.

use core::time::Duration;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::date;
use allclear_core::model::bytes::ANNOUNCEMENT_BYTES;
use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
use allclear_core::model::id::{EventId, VmName};

/// Resources of one event; a placement group holds up to 100 VMs.
pub const MAX_RESOURCES: usize = 1000;

/// The limit in bytes of an id or a name. A longer name is rejected: truncated names could be equal.
const MAX_NAME: usize = 256;
/// Bytes kept of a type, status, source or resource type; all known values are much shorter.
const MAX_WORD: usize = 256;
/// Bytes kept of a description, which is only shown.
const MAX_DESCRIPTION: usize = 1024;
/// The limit in seconds. More than a hundred years is no estimate.
const MAX_DURATION: u64 = u32::MAX as u64;

/// The announcement, or the mistake in the element.
pub(super) fn read(element: &Value) -> Result<Announcement, &'static str> {
    let Value::Object(fields) = element else {
        return Err("the event is not an object");
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
        return Err("the names of the resources are longer than 64 KiB together");
    }
    Ok(announcement)
}

/// The id of an element whose other fields may be unreadable.
pub(super) fn id_of(element: &Value) -> Result<EventId, &'static str> {
    element.as_object().ok_or("the event is not an object").and_then(id)
}

fn id(fields: &Map<String, Value>) -> Result<EventId, &'static str> {
    let Some(Value::String(id)) = fields.get("EventId") else {
        return Err("EventId is missing or not text");
    };
    if id.trim().is_empty() {
        return Err("EventId is blank");
    }
    if id.len() > MAX_NAME {
        return Err("EventId is longer than 256 bytes");
    }
    Ok(EventId::new(id))
}

fn resources(fields: &Map<String, Value>) -> Result<Vec<VmName>, &'static str> {
    let names = match fields.get("Resources") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(names)) => names,
        Some(_) => return Err("Resources is not an array"),
    };
    if names.len() > MAX_RESOURCES {
        return Err("the event names more than 1000 resources");
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

/// Reads `NotBefore`. A started event keeps its date, if any; the status means that the event has begun.
fn not_before(fields: &Map<String, Value>) -> NotBefore {
    date::read(text(fields, "NotBefore")).map_or(NotBefore::Unknown, NotBefore::At)
}

/// Seconds as a number or digits; -1 is the platform's "unknown", 0 its "no interruption".
fn duration(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(number) => number.as_u64(),
        // `parse` alone would accept a plus sign as well.
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

/// Truncates to this many bytes at most, between characters.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

/// Truncates text that is only shown, and replaces control characters: the text must not steer a terminal or begin a
/// line of a log.
pub(super) fn shown(text: &str, bytes: usize) -> String {
    cut(text, bytes).replace(char::is_control, " ")
}
