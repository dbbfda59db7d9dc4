//! A document with made-up events: events of unknown machines, which change with each answer.

use bytes::Bytes;
use serde_json::{Value, json};

use allclear_core::model::document::EventType;

/// The longest description that the replica reads completely.
const DESCRIPTION: usize = 1024;

/// The document with `events` made-up events beside the real events, each of `resources` machines. Some made-up
/// events keep their id and have other content in each answer, and all other made-up events are new. `seq`
/// distinguishes the answers.
pub(super) fn with_lies(body: &Bytes, seq: u64, events: u64, resources: u64) -> Bytes {
    let mut page: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(listed) = page["Events"].as_array_mut() {
        listed.extend((0..events).map(|number| lie(seq, number, resources)));
    }
    page.to_string().into()
}

fn lie(seq: u64, number: u64, resources: u64) -> Value {
    let keeps_its_id = number.is_multiple_of(4);
    let id = if keeps_its_id { format!("lie-{number}") } else { format!("LIE-{seq}-{number}") };
    let names: Vec<String> = (0..resources).map(|name| format!("_other-{seq}-{number}-{name}")).collect();
    let kind = EventType::KNOWN[usize::try_from((seq + number) % EventType::KNOWN.len() as u64).unwrap_or_default()];
    let has_started = keeps_its_id && seq.is_multiple_of(3);
    json!({
        "EventId": id,
        "EventStatus": if has_started { "Started" } else { "Scheduled" },
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": names,
        "NotBefore": "",
        "Description": format!("{seq:08x}").repeat(DESCRIPTION / 8),
        "EventSource": "Platform",
        "DurationInSeconds": seq % 1_000,
    })
}
