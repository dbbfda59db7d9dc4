//! The treatment that policy chose for an event.

use crate::model::time::Timestamp;
use crate::model::workload::Phase;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The action of this cluster for an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Prepare,
    Approve,
    Observe,
}

string_enum!(Action { Prepare => "prepare", Approve => "approve", Observe => "observe" });

/// One time at which the window of a rule is open.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Opening {
    /// The preparation starts.
    pub opens: Timestamp,
    /// From this time on, no preparation starts.
    pub closes: Timestamp,
}

/// The treatment chosen by policy for one event, as committed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Treatment {
    pub action: Action,
    /// The name of the rule that chose the treatment.
    pub rule: String,
    pub phases: Vec<Phase>,
    /// Counted from the start of preparation; when the budget is exhausted the event is approved regardless.
    pub budget: Option<Duration>,
    /// Preparation waits until this long before NotBefore; `None` starts it at once.
    pub ahead: Option<Duration>,
    /// An earlier start of the preparation, within the window of the rule.
    pub opening: Option<Opening>,
    /// The last opening that passed without a preparation.
    pub missed: Option<Opening>,
    /// Only hooks that name a `min_freeze` of at most the event's duration apply.
    pub only_named_freezes: bool,
    pub margin: Duration,
    pub give_back_after: Duration,
    pub last_call: Duration,
    pub repost_after: Duration,
}
