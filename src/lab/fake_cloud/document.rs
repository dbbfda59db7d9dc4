//! The document as written by one api-version: fields and event types by version, names with or without underscore.

use serde::Serialize;

use super::dates;
use super::version::EmulatedVersion;
use allclear_cloud::Notice;
use allclear_core::model::document::Announcement;

/// An event, with the fields in the order of captures.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct EventRow<'a> {
    event_id: &'a str,
    event_status: &'a str,
    event_type: &'a str,
    resource_type: &'a str,
    resources: Vec<String>,
    not_before: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_in_seconds: Option<i64>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DocumentPage<'a> {
    document_incarnation: u64,
    events: Vec<EventRow<'a>>,
}

pub(super) fn written(notice: &Notice, version: EmulatedVersion) -> String {
    let shown = notice.events.iter().filter(|event| version.shows(&event.kind));
    let page = DocumentPage {
        document_incarnation: notice.incarnation,
        events: shown.map(|event| row(event, version)).collect(),
    };
    serde_json::to_string(&page).unwrap_or_default()
}

fn row(event: &Announcement, version: EmulatedVersion) -> EventRow<'_> {
    let underscore = if version.has_underscore() { "_" } else { "" };
    let seconds = |duration: core::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    EventRow {
        event_id: event.id.as_received(),
        event_status: event.status.as_str(),
        event_type: event.kind.as_str(),
        resource_type: &event.resource_type,
        resources: event.resources.iter().map(|name| format!("{underscore}{name}")).collect(),
        not_before: dates::not_before(event.not_before, version.has_iso_times()),
        description: version.has_description().then_some(&event.description),
        event_source: version.has_source().then_some(event.source.as_str()),
        duration_in_seconds: version.has_duration().then(|| event.duration.map_or(-1, seconds)),
    }
}
