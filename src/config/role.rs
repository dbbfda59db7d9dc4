//! `workload.role`: who tells what a workload is within its group.

use core::time::Duration;

use super::reader::Table;
use super::scalar;

/// Whom to ask, and how often. It answers `primary` or `replica`, or JSON with that as its `role`.
#[derive(Clone, PartialEq, Debug)]
pub struct Role {
    pub source: RoleSource,
    pub every: Duration,
}

#[derive(Clone, PartialEq, Debug)]
pub enum RoleSource {
    /// A program and its arguments, run without a shell; never empty.
    Command(Vec<String>),
    /// What answers a GET.
    Http(String),
}

pub(super) fn read_source(table: &mut Table<'_>) -> Option<RoleSource> {
    let command = table.optional("command", scalar::command);
    let http = table.optional("http", scalar::hook_url);
    match (command, http) {
        (Some(_), Some(_)) => {
            table.mistake_here("names two ways to ask: write `command` or `http`");
            None
        }
        (Some(command), None) => Some(RoleSource::Command(command)),
        (None, Some(address)) => Some(RoleSource::Http(address)),
        (None, None) => {
            if !table.has("command") && !table.has("http") {
                let advice = "names nobody to ask: add `command = [\"/path/to/program\"]` or `http = \"http://…\"`";
                table.mistake_here(advice);
            }
            None
        }
    }
}
