//! What happened in a cloud, for whoever judges a run afterwards.

use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;

use super::approval::Approver;
use super::event::{Cause, End};
use super::orders::Amendment;

/// One thing that happened to one event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Happening {
    pub at: Timestamp,
    pub event: EventId,
    pub what: What,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum What {
    Announced,
    Moved { not_before: Timestamp },
    Amended(Amendment),
    Accepted(Approver),
    Started(Cause),
    Ended(End),
}
