//! Drills: made-up events.

use alloc::string::String;

/// The prefix of every drill's id. The platform's ids are GUIDs, which have no such letters.
pub const PREFIX: &str = "drill-";

/// A made-up event, and its initiator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Drill {
    pub mode: Mode,
    pub who: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Hooks with dry-run support are run; other hooks are only named.
    DryRun,
    /// Every hook is run as if the event were real.
    Rehearsal,
}

string_enum!(Mode { DryRun => "dry_run", Rehearsal => "rehearsal" });
