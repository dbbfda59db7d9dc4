//! Common parts of the commands' texts: the output context, and the words for an event.

use std::path::Path;

use super::moments;
use super::page::Terminal;
use allclear_core::model::time::Timestamp;
use allclear_server::config::USUAL_SOCKET;
use allclear_server::replica::clock;
use allclear_server::replica::sanitize::{quoted, sanitize};
use allclear_server::replica::view::advice;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The terminal, the time and the endpoint for which a text is written.
pub(in crate::cli) struct OutputContext {
    pub(in crate::cli) paper: Terminal,
    pub(in crate::cli) now: Timestamp,
    /// The replica has no quorum, so no hook begins.
    pub(super) lacks_quorum: bool,
    /// The `--endpoint` argument with which a command reaches the same replica; empty, or begins with a space.
    pub(super) at: String,
}

impl OutputContext {
    pub(in crate::cli) fn at(endpoint: &Path) -> Self {
        let at = if endpoint == Path::new(USUAL_SOCKET) {
            String::new()
        } else {
            format!(" --endpoint {}", quoted(&endpoint.display().to_string()))
        };
        Self { paper: Terminal::of_stdout(), now: clock::now(), lacks_quorum: false, at }
    }

    /// As of this RFC 3339 time, if it is one.
    pub(in crate::cli) fn at_time(self, now: &str) -> Self {
        Self { now: clock::from_rfc3339(now).unwrap_or(self.now), ..self }
    }

    /// As the replica sees the cluster.
    pub(in crate::cli) fn under(self, status: &shown::Status) -> Self {
        Self { lacks_quorum: !status.quorum, ..self.at_time(&status.now) }
    }

    /// A command line for the same replica.
    pub(super) fn command(&self, command: &str, arguments: &[&str]) -> String {
        let line = advice::command(command, arguments).unwrap_or_else(|| "allclear events --json".into());
        line + &self.at
    }
}

/// A message of the replica, sanitized for use within a line of text.
pub(in crate::cli) fn sentence(message: &str) -> String {
    sanitize(&moments::dated(message))
}

/// One line for one event.
pub(in crate::cli) fn summary(event: &shown::Event) -> String {
    let drill = event.drill.as_ref().map(|drill| format!(" (DRILL, {})", drill.mode)).unwrap_or_default();
    sanitize(&format!("{}{drill} {}: {}", event.id, what(event), how_far(event)))
}

/// `Redeploy of db-0 by User`; a drill has no source but the operator that requested the drill.
pub(super) fn what(event: &shown::Event) -> String {
    let by = if event.drill.is_some() { String::new() } else { format!(" by {}", event.source) };
    format!("{} of {}{by}", event.r#type, event.resources.join(", "))
}

/// `the failover of orders-db on db-0 was done`, for the hooks that were not.
pub(super) fn missing(event: &shown::Event) -> String {
    let were = if event.missing_hooks.len() == 1 { "was" } else { "were" };
    format!("the {} {were} done", event.missing_hooks.join(" and the "))
}

/// The event's stage, and how the event ended.
pub(super) fn how_far(event: &shown::Event) -> String {
    let end = match (&event.outcome, &event.start_cause) {
        (Some(outcome), cause) if outcome == "completed" && !event.start_seen => {
            let after = if cause.is_some() { " after its approval" } else { "" };
            format!(", over{after}; no start was seen")
        }
        (Some(outcome), Some(cause)) => format!(", {outcome}, started because: {cause}"),
        (Some(outcome), None) => format!(", {outcome}"),
        (None, Some(cause)) => format!(" because: {cause}"),
        (None, None) => String::new(),
    };
    match event.stage.as_str() {
        "preparing" if is_early(event) => "waits for the start of its preparation".into(),
        "preparing" if event.approved_by_operator => "preparing, approved by an operator".into(),
        stage => format!("{stage}{end}"),
    }
}

/// The preparation has not begun.
pub(super) fn is_early(event: &shown::Event) -> bool {
    advice::blockers(event).any(|blocker| blocker.code == "too_early")
}

/// The faults of a group, each as the rest of a sentence after its name.
pub(super) fn group_faults(group: &shown::Group) -> impl Iterator<Item = &String> {
    group.primary_fault.iter().chain(&group.over_limit)
}
