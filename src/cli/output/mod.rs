//! What a replica says, as text for people: the most important first.

mod advice;
mod event;
mod events;
mod members;
pub(super) mod moments;
pub(super) mod page;
mod status;
mod workloads;

use std::path::Path;

pub(super) use self::event::{all_open, event};
pub(super) use self::events::events;
pub(super) use self::members::members;
pub(super) use self::status::status;
pub(super) use self::workloads::workloads;

use self::page::Terminal;
use allclear_core::model::time::Timestamp;
use allclear_server::http::sanitize::sanitize;
use allclear_server::replica::clock;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Where `--endpoint` points when it is left out.
pub(super) const USUAL_ENDPOINT: &str = "/run/allclear/operator.sock";

/// Who reads, where, and when.
pub(super) struct OutputContext {
    pub(super) paper: Terminal,
    pub(super) now: Timestamp,
    /// What a command needs to reach the same replica; begins with a space where it is anything.
    at: String,
}

impl OutputContext {
    pub(super) fn at(endpoint: &Path) -> Self {
        let at = if endpoint == Path::new(USUAL_ENDPOINT) {
            String::new()
        } else {
            format!(" --endpoint {}", advice::quoted(&endpoint.display().to_string()))
        };
        Self { paper: Terminal::of_stdout(), now: clock::now(), at }
    }
}

/// A message as it may be shown within a line of one's own.
pub(super) fn sentence(message: &str) -> String {
    sanitize(&moments::within(clock::now(), message))
}

/// One line for one event.
pub(super) fn summary(event: &shown::Event) -> String {
    let drill = event.drill.as_ref().map(|drill| format!(" (DRILL, {})", drill.mode)).unwrap_or_default();
    sanitize(&format!("{}{drill} {}: {}", event.id, what(event), how_far(event)))
}

/// `Redeploy of db-0 by User`; a drill is by nobody but who asked for it.
fn what(event: &shown::Event) -> String {
    let by = if event.drill.is_some() { String::new() } else { format!(" by {}", event.source) };
    format!("{} of {}{by}", event.r#type, event.resources.join(", "))
}

/// Its stage, and how it ended.
fn how_far(event: &shown::Event) -> String {
    let end = match (&event.outcome, &event.start_cause) {
        (Some(outcome), Some(cause)) => format!(", {outcome}, started because: {cause}"),
        (Some(outcome), None) => format!(", {outcome}"),
        (None, _) => String::new(),
    };
    format!("{}{end}", event.stage)
}
