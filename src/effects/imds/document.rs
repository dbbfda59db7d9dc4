//! Converts an answer of the metadata endpoint to a document, or to a reason for rejection.
//!
//! Every doubt is a rejection: an event is absent only if a valid document does not list its id. An unreadable element
//! stays in the document by its id; an element without an id leaves a gap in the document. If left out, its event
//! would appear to be over.

use serde_json::{Map, Value};

use super::event::{self, shown};
use super::json;
use super::no_information::NoInformation;
use allclear_core::model::document::{Announcement, Document};

/// The limit for the bytes of a body (`SPEC.md` 17.5). Documents of a full placement group stay far below.
pub const MAX_BODY: usize = 1024 * 1024;
/// The limit for events of one document. No known platform exceeds this limit. The limit is above the number of events
/// that the state keeps open, so that a document with too many events still fills the state.
pub const MAX_EVENTS: usize = 1000;

/// Bytes of the vendor's error text kept for logs.
const MAX_SAID: usize = 256;

/// Parses an answer with this status and body.
///
/// # Errors
/// [`NoInformation`] for all answers but status 200 with JSON, an integer incarnation and an `Events` array.
pub fn read(status: u16, body: &[u8]) -> Result<Document, NoInformation> {
    let fields = accepted(status, body).map_err(of_version)?;
    // The value is not used: incarnations restart and jump. Its presence distinguishes a document from other JSON.
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

/// Parses a handwritten document for a preview: a document, or a single event. The id and the status of an event may be
/// left out.
///
/// # Errors
/// A text that names the part which cannot be parsed.
pub fn read_written(body: &[u8]) -> Result<Document, String> {
    let told = |why: NoInformation| match why {
        NoInformation::EmptyBody => "the text is empty".into(),
        NoInformation::NotJson { why } => format!("the text is not JSON: {why}"),
        NoInformation::TooManyEvents { count, limit } => {
            format!("the document has {count} events; the limit is {limit}")
        }
        NoInformation::TooLarge { limit } => format!("the text is longer than {limit} bytes"),
        _ => "the JSON value is neither an event nor a document with `Events`".into(),
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
    // Some web servers put a byte order mark before JSON; the mark carries no meaning.
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

/// Captures have numbers, samples have strings (`SPEC.md` 17.3).
fn is_integer(incarnation: &Value) -> bool {
    match incarnation {
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::String(digits) => {
            !digits.is_empty() && digits.len() <= 64 && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The service has this path in every version, so 404 may be about the requested version.
fn of_version(why: NoInformation) -> NoInformation {
    match why {
        NoInformation::Status { code: 404, said } => NoInformation::NotServed { said },
        why => why,
    }
}

/// The reason for any status but 200 and the redirects. Of the 400s only an object with `newest-versions` is about the api-version:
/// other 400s (a missing header, a proxy in between) must not change the requested version.
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
        _ if matches!(code, 403 | 421) => NoInformation::NotAllowed { code },
        _ if code == 502 => NoInformation::BadGateway,
        _ => NoInformation::Status { code, said },
    }
}
