//! What one metadata endpoint said, validated. How it looks on the wire is the concern of `metadata`.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::id::{EventId, VmName};
use super::time::Timestamp;

/// The answer of one endpoint at one time.
///
/// The incarnation that came with it is left out on purpose: it starts again, jumps and changes without news
/// (`imds.md`), so nothing may be concluded from it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Document {
    /// Ordered by id, at most one for each.
    pub events: Vec<Announcement>,
}

impl Document {
    /// Orders the announcements; of two with the same id the one that is further counts.
    pub fn new(mut events: Vec<Announcement>) -> Self {
        events.sort_by(|a, b| a.id.cmp(&b.id).then(b.status.cmp(&a.status)));
        events.dedup_by(|later, kept| later.id == kept.id);
        Self { events }
    }

    pub fn get(&self, id: &EventId) -> Option<&Announcement> {
        self.events.binary_search_by(|event| event.id.cmp(id)).ok().and_then(|place| self.events.get(place))
    }
}

/// One event as one document shows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Announcement {
    pub id: EventId,
    pub status: Status,
    pub kind: Kind,
    pub source: Source,
    pub resource_type: String,
    pub resources: Vec<VmName>,
    pub not_before: NotBefore,
    pub description: String,
    /// The expected interruption; `None` when the platform does not say (-1, or an api-version before 2020-07-01).
    pub duration: Option<Duration>,
}

/// Ordered by how far the event is. A status nobody knows yet is never approved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    Other(String),
    Scheduled,
    Started,
}

/// What is going to happen to the VMs (`EventType`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Freeze,
    Reboot,
    Redeploy,
    Preempt,
    Terminate,
    Other(String),
}

/// Who asked for it (`EventSource`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    Platform,
    User,
    Other(String),
}

/// When the platform goes ahead without an approval.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotBefore {
    At(Timestamp),
    /// Blank (as for a started event) or unreadable; the minimum notice of the type counts instead.
    Unknown,
}

macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            /// Known words without regard to case; any other is kept as it is.
            pub fn from_word(word: &str) -> Self {
                $(if word.eq_ignore_ascii_case($word) { return Self::$variant; })+
                Self::Other(word.into())
            }

            pub fn as_word(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_word())
            }
        }
    };
}

words!(Status { Scheduled => "Scheduled", Started => "Started" });
words!(Source { Platform => "Platform", User => "User" });
words!(Kind {
    Freeze => "Freeze",
    Reboot => "Reboot",
    Redeploy => "Redeploy",
    Preempt => "Preempt",
    Terminate => "Terminate",
});

impl Kind {
    /// The notice the vendor documents for the type: counted from first sight where NotBefore is unknown.
    /// A type nobody knows yet is treated as a Redeploy.
    pub fn minimum_notice(&self) -> Duration {
        let seconds = match self {
            Self::Freeze | Self::Reboot => 15 * 60,
            Self::Redeploy | Self::Other(_) => 10 * 60,
            Self::Preempt => 30,
            Self::Terminate => 5 * 60,
        };
        Duration::from_secs(seconds)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of no VM in particular.
    pub(in crate::machine) fn announced(id: &str, status: Status) -> Announcement {
        Announcement {
            id: EventId::new(id),
            status,
            kind: Kind::Reboot,
            source: Source::Platform,
            resource_type: String::new(),
            resources: Vec::new(),
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        }
    }

    #[test]
    fn every_event_is_found_whatever_its_place_and_the_one_that_is_further_counts() {
        let listed =
            [("c", Status::Scheduled), ("a", Status::Started), ("d", Status::Scheduled), ("a", Status::Scheduled)];
        let document = Document::new(listed.into_iter().map(|(id, status)| announced(id, status)).collect());
        let found = ["a", "b", "c", "d", "e"].map(|id| document.get(&EventId::new(id)).map(|event| &event.status));
        let scheduled = Some(&Status::Scheduled);
        assert_eq!(found, [Some(&Status::Started), None, scheduled, scheduled, None]);
    }
}
