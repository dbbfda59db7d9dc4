//! Drills: made-up events.

use alloc::string::String;

/// How the id of every drill begins. The platform's ids are GUIDs, which have no such letters.
pub const PREFIX: &str = "drill-";

/// A made-up event, and who wanted it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Drill {
    pub mode: Mode,
    pub who: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Hooks that can say what they would do are run; the others are only named.
    DryRun,
    /// Every hook is run as if the event were real.
    Rehearsal,
}

string_enum!(Mode { DryRun => "dry_run", Rehearsal => "rehearsal" });
