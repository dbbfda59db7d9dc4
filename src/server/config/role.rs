//! `workload.role`: the source of a workload's role in its group.

use core::time::Duration;

use super::hook::CommandSettings;
use super::http::{self, Http};
use super::reader::TomlTable;
use super::scalar;

/// The source of a role, and the interval of requests. The source answers `primary` or `replica`, or JSON with such a
/// `role`.
#[derive(Clone, PartialEq, Debug)]
pub struct RoleConfig {
    pub source: ConfiguredRoleSource,
    pub every: Duration,
    /// The user and the variables of the command: the workload's; without a user of the workload, a hook's user.
    pub settings: CommandSettings,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ConfiguredRoleSource {
    /// A program and its arguments, run without a shell; never empty.
    Command(Vec<String>),
    /// An address for GET requests.
    Http(Http),
}

pub(super) fn read_source(table: &mut TomlTable<'_>) -> Option<ConfiguredRoleSource> {
    let command = table.optional("command", scalar::command).map(ConfiguredRoleSource::Command);
    let http = http::read(table).map(ConfiguredRoleSource::Http);
    let neither = "has no source: add `command = [\"/path/to/program\"]` or `http = \"http://…\"`";
    table.one_of(("command", command), ("http", http), neither)
}
