//! The history of a cloud, for the evaluation of a run.

use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;

use super::approval::Approver;
use super::event::{EventEnd, PlatformStartCause};
use super::orders::Amendment;

/// One change of one event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub event: EventId,
    pub what: PlatformOccurrence,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PlatformOccurrence {
    Announced,
    Moved { not_before: Timestamp },
    Amended(Amendment),
    Accepted(Approver),
    Started(PlatformStartCause),
    Ended(EventEnd),
}
