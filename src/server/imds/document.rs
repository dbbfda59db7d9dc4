//! An answer of the metadata endpoint becomes a document, or a reason why it is none.
//!
//! Refuses every doubt: an event is absent only if a valid document does not list it. An element that cannot be read stays
//! in the document by its id, and where it has none, the document has a gap: left out, it would look like an event that is
//! over.

use serde_json::{Map, Value};

use super::event::{self, shown};
use super::json;
use super::no_information::NoInformation;
use allclear_core::model::document::{Announcement, Document};

/// Bytes of a body that are read (`imds.md`, status codes). Documents of a full placement group stay far below.
pub const MAX_BODY: usize = 1024 * 1024;
/// Events of one document. More is no platform that we know; it is above what the state keeps open, so that a document
/// that lists too much still tells what there is room for.
pub const MAX_EVENTS: usize = 1000;

/// Bytes of the vendor's own words that are kept for logs.
const MAX_SAID: usize = 256;

/// What an answer with this status and body says.
///
/// # Errors
/// [`NoInformation`] for everything but status 200 with JSON, an integer incarnation and an `Events` array.
pub fn read(status: u16, body: &[u8]) -> Result<Document, NoInformation> {
    let fields = accepted(status, body)?;
    // The value is not used: it starts again and jumps. That it is there tells a document from other JSON.
    if !fields.get("DocumentIncarnation").is_some_and(is_integer) {
        return Err(NoInformation::NoIncarnation);
    }
    let Some(Value::Array(events)) = fields.get("Events") else {
        return Err(NoInformation::NoEvents);
    };
    is_bounded(events)?;
    let (mut listed, mut has_gap) = (Vec::with_capacity(events.len()), false);
    for element in events {
        match event::read(element) {
            Ok(announcement) => listed.push(announcement),
            Err(why) => match event::id_of(element) {
                Ok(id) => listed.push(Announcement::unreadable(id, why)),
                Err(_) => has_gap = true,
            },
        }
    }
    Ok(Document { has_element_without_id: has_gap, ..Document::new(listed) })
}

/// What somebody wrote down, to see what would be done with it: a document, or one event of it, of which the id and
/// the status may be left out.
///
/// # Errors
/// In words, as far as it is not understood.
pub fn read_written(body: &[u8]) -> Result<Document, String> {
    let told = |why: NoInformation| match why {
        NoInformation::EmptyBody => "it is empty".into(),
        NoInformation::NotJson { why } => format!("it is not JSON: {why}"),
        NoInformation::TooManyEvents { count, limit } => format!("it has {count} events, more than {limit}"),
        NoInformation::TooLarge { limit } => format!("it is longer than {limit} bytes"),
        _ => "it is neither an event nor a document with `Events`".into(),
    };
    let mut fields = object(body).map_err(told)?;
    match fields.get("Events") {
        Some(Value::Array(events)) => is_bounded(events).map_err(told).and_then(|()| written(events)),
        None if fields.contains_key("EventType") => {
            for (key, usual) in [("EventId", "made-up"), ("EventStatus", "Scheduled")] {
                fields.entry(key).or_insert_with(|| usual.into());
            }
            written(&[Value::Object(fields)])
        }
        _ => Err(told(NoInformation::NoEvents)),
    }
}

fn is_bounded(events: &[Value]) -> Result<(), NoInformation> {
    if events.len() > MAX_EVENTS {
        return Err(NoInformation::TooManyEvents { count: events.len(), limit: MAX_EVENTS });
    }
    Ok(())
}

fn written(events: &[Value]) -> Result<Document, String> {
    let told =
        |(position, element)| event::read(element).map_err(|why| format!("event {position}, counted from 0: {why}"));
    events.iter().enumerate().map(told).collect::<Result<Vec<_>, _>>().map(Document::new)
}

/// The JSON object of an answer with status 200; shared with the instance metadata.
pub(super) fn accepted(status: u16, body: &[u8]) -> Result<Map<String, Value>, NoInformation> {
    match status {
        200 => object(body),
        300..=399 => Err(NoInformation::Redirect { code: status }),
        _ => Err(refusal(status, body)),
    }
}

fn object(body: &[u8]) -> Result<Map<String, Value>, NoInformation> {
    if body.len() > MAX_BODY {
        return Err(NoInformation::TooLarge { limit: MAX_BODY });
    }
    // Some web servers put a byte order mark before JSON; it carries no meaning.
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if text.trim_ascii().is_empty() {
        return Err(NoInformation::EmptyBody);
    }
    match json::read(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(NoInformation::NotObject),
        Err(why) => Err(NoInformation::NotJson { why: why.to_string() }),
    }
}

/// Captures have numbers, samples have strings (`imds.md`, the document).
fn is_integer(incarnation: &Value) -> bool {
    match incarnation {
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::String(digits) => {
            !digits.is_empty() && digits.len() <= 64 && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Any status but 200 and the redirects. Only the object with `newest-versions` is about the api-version: other 400s
/// (a missing header, a proxy in between) must not change the version that is asked for.
fn refusal(code: u16, body: &[u8]) -> NoInformation {
    let fields = json::read(body).unwrap_or_default();
    let said = fields
        .get("error")
        .and_then(Value::as_str)
        .map_or_else(|| "no reason given".into(), |said| shown(said, MAX_SAID));
    match fields.get("newest-versions") {
        Some(Value::Array(versions)) if code == 400 => {
            let newest = versions.iter().filter_map(Value::as_str).take(16).map(|version| shown(version, 32)).collect();
            NoInformation::VersionRefused { said, newest }
        }
        _ => NoInformation::Status { code, said },
    }
}
