//! Drills: made-up events.

use crate::model::command::bounded;
use crate::model::document::{EventType, Source};
use alloc::format;
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

/// The type of a drill. A word that Azure does not document is refused: a misspelt type would rehearse another treatment
/// than the type that was meant.
pub fn event_type(word: &str) -> Result<EventType, String> {
    match EventType::parse(word) {
        EventType::Other(word) => Err(unknown("type", &word, EventType::KNOWN)),
        known => Ok(known),
    }
}

/// The source of a drill, as [`event_type`]; the empty word means the platform.
pub fn source(word: &str) -> Result<Source, String> {
    match Source::parse(word) {
        Source::Other(word) if word.is_empty() => Ok(Source::Platform),
        Source::Other(word) => Err(unknown("source", &word, Source::KNOWN)),
        known => Ok(known),
    }
}

fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    format!("the {what} {:?} is unknown; a drill has one of: {}", bounded(word), known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drill_has_a_type_and_a_source_that_azure_documents() {
        assert_eq!((event_type("reboot"), source("user")), (Ok(EventType::Reboot), Ok(Source::User)));
        assert_eq!(source(""), Ok(Source::Platform));
        let why = event_type("Rebot").unwrap_err();
        assert_eq!(
            why,
            "the type \"Rebot\" is unknown; a drill has one of: Freeze, Reboot, Redeploy, Preempt, Terminate"
        );
        assert_eq!(source("Me").unwrap_err(), "the source \"Me\" is unknown; a drill has one of: Platform, User");
    }
}
