//! A validated document of one metadata endpoint. `imds` parses the JSON.

use crate::model::id::{EventId, VmName};
use crate::model::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The answer of one endpoint at one time.
///
/// The document's incarnation is left out on purpose: the incarnation starts again, jumps and changes without a change
/// of events (`SPEC.md` 17.3), so nothing may be concluded from it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Document {
    /// Ordered by id, at most one announcement for each id.
    pub events: Vec<Announcement>,
    /// The document also lists an element without a readable id: a missing event may be that element.
    pub has_element_without_id: bool,
}

impl Document {
    /// Orders the announcements. Announcements with one id are one event (`SPEC.md` 2, D1), and an event that is
    /// over is not listed (D6).
    pub fn new(mut events: Vec<Announcement>) -> Self {
        events.retain(|event| !event.status.is_over());
        events.sort_by(|a, b| a.id.cmp(&b.id));
        events.dedup_by(|later, kept| {
            let is_same = later.id == kept.id;
            if is_same {
                *kept = kept.joined_with(later);
            }
            is_same
        });
        Self { events, has_element_without_id: false }
    }

    /// Removes the ends of notices: while cluster time is not known, a time of the platform cannot be compared with the
    /// clock.
    #[must_use]
    pub fn forget_times(mut self) -> Self {
        self.events.iter_mut().for_each(|event| event.not_before = NotBefore::Unknown);
        self
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
    pub kind: EventType,
    pub source: Source,
    pub resource_type: String,
    /// Each VM once.
    pub resources: Vec<VmName>,
    pub not_before: NotBefore,
    pub description: String,
    /// The expected interruption; `None` without a value of the platform (-1, or an api-version before 2020-07-01).
    pub duration: Option<Duration>,
}

impl Announcement {
    /// An element of a document that has an id and no other readable content (D7), and the reason.
    pub fn unreadable(id: EventId, why: &str) -> Self {
        Self {
            id,
            status: Status::Unreadable,
            kind: EventType::Other(String::new()),
            source: Source::Other(String::new()),
            resource_type: String::new(),
            resources: Vec::new(),
            not_before: NotBefore::Unknown,
            description: why.into(),
            duration: None,
        }
    }

    /// The union of two views of one event: all VMs of either view, the earlier end of the notice, the harsher type,
    /// the platform before a user, the further status, and a known value before an unknown value. A missing or
    /// unreadable view adds its VMs.
    #[must_use]
    pub fn joined_with(&self, other: &Self) -> Self {
        let longer = |one: &String, other: &String| if one.is_empty() { other.clone() } else { one.clone() };
        let added = |one: &Self, other: &Self| -> Vec<VmName> {
            if one.resources == other.resources {
                return one.resources.clone();
            }
            let known = VmSet::of(&one.resources);
            let added = other.resources.iter().filter(|vm| !known.contain(vm));
            one.resources.iter().chain(added).cloned().collect()
        };
        match (&self.status, &other.status) {
            (_, Status::Missing | Status::Unreadable) => return Self { resources: added(self, other), ..self.clone() },
            (Status::Missing | Status::Unreadable, _) => {
                return Self { resources: added(other, self), ..other.clone() };
            }
            _ => {}
        }
        Self {
            id: self.id.clone(),
            status: self.status.clone().max(other.status.clone()),
            kind: if other.kind.harm() > self.kind.harm() { other.kind.clone() } else { self.kind.clone() },
            source: self.source.clone().min(other.source.clone()),
            resource_type: longer(&self.resource_type, &other.resource_type),
            resources: added(self, other),
            not_before: self.not_before.min(other.not_before),
            description: longer(&self.description, &other.description),
            duration: self.duration.max(other.duration),
        }
    }

    /// One decision fits both views: the type, the VMs and the source are equal. An unreadable view contradicts
    /// nothing.
    pub fn is_decided_like(&self, other: &Self) -> bool {
        let is_same = self.kind == other.kind && self.source == other.source;
        is_same && self.names_no_other(other) && other.names_no_other(self)
    }

    /// Every VM of this announcement is a VM of the other announcement.
    pub fn names_no_other(&self, other: &Self) -> bool {
        if self.resources == other.resources {
            return true;
        }
        let known = VmSet::of(&other.resources);
        self.resources.iter().all(|vm| known.contain(vm))
    }
}

/// A set of VMs for lookups: sorted when large, because two lists with a thousand VMs each may be compared.
struct VmSet<'a> {
    few: &'a [VmName],
    many: Vec<&'a VmName>,
}

impl<'a> VmSet<'a> {
    const FEW: usize = 16;

    fn of(names: &'a [VmName]) -> Self {
        let mut many: Vec<_> = if names.len() > Self::FEW { names.iter().collect() } else { Vec::new() };
        many.sort_unstable();
        Self { few: names, many }
    }

    fn contain(&self, vm: &VmName) -> bool {
        if self.many.is_empty() { self.few.contains(vm) } else { self.many.binary_search(&vm).is_ok() }
    }
}

/// Ordered by how far the event is. An unknown status is never approved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// The last documents do not list the event, and the event is not over yet.
    Missing,
    /// Only the id of the element can be read.
    Unreadable,
    Other(String),
    Scheduled,
    Started,
}

impl Status {
    /// The event is over, though still listed.
    fn is_over(&self) -> bool {
        const OVER: [&str; 3] = ["completed", "canceled", "cancelled"];
        matches!(self, Self::Other(word) if OVER.iter().any(|over| word.eq_ignore_ascii_case(over)))
    }

    /// The impact is known and can be prepared for.
    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Scheduled | Self::Started)
    }

    /// A document without the event, or with an unreadable element, contradicts nothing known of the event.
    pub const fn says_nothing(&self) -> bool {
        matches!(self, Self::Missing | Self::Unreadable)
    }
}

/// The impact on the VMs (`EventType`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EventType {
    Freeze,
    Reboot,
    Redeploy,
    Preempt,
    Terminate,
    Other(String),
}

/// The initiator of the event (`EventSource`). Ordered by precedence where two views differ: an event counts as
/// user-initiated only when all views agree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    Platform,
    Other(String),
    User,
}

/// When the platform starts the event without an approval.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotBefore {
    At(Timestamp),
    /// Blank (as for a started event) or unreadable; the minimum notice of the type counts instead.
    Unknown,
}

macro_rules! open_string_enum {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            /// The names known to this program.
            pub const KNOWN: &'static [&'static str] = &[$($word),+];

            /// Known names are matched without regard to case; any other name is kept unchanged.
            pub fn parse(word: &str) -> Self {
                $(if word.eq_ignore_ascii_case($word) { return Self::$variant; })+
                Self::Other(word.into())
            }

            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

open_string_enum!(Status { Missing => "missing", Unreadable => "unreadable", Scheduled => "Scheduled", Started => "Started" });

open_string_enum!(Source { Platform => "Platform", User => "User" });

open_string_enum!(EventType {
    Freeze => "Freeze",
    Reboot => "Reboot",
    Redeploy => "Redeploy",
    Preempt => "Preempt",
    Terminate => "Terminate",
});

impl EventType {
    /// The notice documented by the vendor for the type: counted from first sight where NotBefore is unknown. An
    /// unknown type is treated as a Redeploy.
    pub fn minimum_notice(&self) -> Duration {
        let seconds = match self {
            Self::Freeze | Self::Reboot => 15 * 60,
            Self::Redeploy | Self::Other(_) => 10 * 60,
            Self::Preempt => 30,
            Self::Terminate => 5 * 60,
        };
        Duration::from_secs(seconds)
    }

    /// Advice of the platform, which stops no VM: of the known names, `SpotRebalanceRecommendation`.
    pub fn is_recommendation(&self) -> bool {
        matches!(self, Self::Other(word) if word.to_ascii_lowercase().contains("recommendation"))
    }

    /// A greater number is the harsher type.
    const fn harm(&self) -> u8 {
        match self {
            Self::Freeze => 0,
            Self::Other(_) => 1,
            Self::Reboot => 2,
            Self::Redeploy => 3,
            Self::Preempt => 4,
            Self::Terminate => 5,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
