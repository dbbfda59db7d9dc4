//! Checks that a configuration with secrets is readable only by its users.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{Config, Hidden, Location};
use crate::files;

/// At most this many values are named in the message.
const NAMED: usize = 3;

/// Reason not to start: the configuration file itself contains possibly secret values and is readable by every user.
pub fn told_to_all(config: &Config, file: &Path) -> Option<String> {
    let is_inside = |hidden: &&Hidden| matches!(hidden.place, Location::File { .. });
    let inside: BTreeSet<&str> = config.hidden.iter().filter(is_inside).map(|hidden| hidden.path.as_str()).collect();
    if inside.is_empty() {
        return None;
    }
    let why = files::check_unread(file).err()?;
    let named: Vec<&str> = inside.iter().copied().take(NAMED).collect();
    let more = if inside.len() > NAMED { ", …" } else { "" };
    Some(format!("{why}; or add the harmless names of {}{more} to `env_shown` and `headers_shown`", named.join(", ")))
}

/// Secrets too short to be cut from the output of hooks, one sentence each.
pub fn too_short(config: &Config) -> impl Iterator<Item = String> {
    config.hidden.iter().filter(|hidden| hidden.is_too_short).map(|Hidden { path, place, .. }| {
        let place = match place {
            Location::File { line, .. } => format!(" in line {line}"),
            Location::Variable(name) => format!(" by {name}"),
            Location::Whole => String::new(),
        };
        format!(
            "`{path}`{place} is too short to be removed from output and messages: add the name to `env_shown` or \
             `headers_shown` if the value is harmless, or use a longer value"
        )
    })
}
