//! The reasons why an isolated replica does not approve an event.

use crate::model::id::{EventId, VmName, WorkloadName};
use crate::model::operator::Suspension;
use crate::model::state::OPEN_LIMIT;
use crate::model::time::Timestamp;
use core::fmt;

/// Whether and when a replica approves an event alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApprovalForecast {
    From(Timestamp),
    /// Not as long as this is so.
    Not(IsolatedBlocker),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IsolatedBlocker {
    /// Without a quorum only what a user asked for is approved.
    NotUserInitiated,
    NotScheduled,
    /// Policy leaves it to others.
    Observed,
    /// The others of three or more voters may have a quorum.
    NotAPair,
    /// It names another VM than that of the replica that is out of reach.
    TakesMoreAway(VmName),
    /// This replica's own workload is out or not ready, and would be the last one.
    OwnMemberOut(WorkloadName),
    /// A hook failed for good and holds the event.
    HookFailed,
    /// A committed hook may run until then.
    HookMayRun(Timestamp),
    /// It would not be the only event of its group.
    OtherEvent(EventId),
    Approved,
    /// By an operator.
    Held(Suspension),
    /// Everything, by an operator.
    Paused(Suspension),
    /// This replica approved another event, which is not over.
    OtherApproval(EventId),
    JournalFull,
    /// The log has as many open events as it takes, and this one is not among them.
    NotTakenUp,
    /// Another voter hears a leader.
    LedElsewhere(VmName),
    /// It may hear a leader again until then.
    TooSoon(Timestamp),
    NoVoter,
}

impl fmt::Display for IsolatedBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUserInitiated => f.write_str("it is not user-initiated"),
            Self::NotScheduled => f.write_str("this replica does not see it as Scheduled"),
            Self::Observed => f.write_str("policy leaves it to others"),
            Self::NotAPair => f.write_str("the other voters may have a quorum without this replica"),
            Self::TakesMoreAway(vm) => write!(f, "it takes {vm} away, which is not known to be lost"),
            Self::OwnMemberOut(workload) => write!(f, "{workload} of this replica is not in service"),
            Self::HookFailed => f.write_str("a hook failed and holds it"),
            Self::HookMayRun(_) => f.write_str("a hook of it may still run"),
            Self::OtherEvent(id) => write!(f, "event {id} is open in the same group"),
            Self::Approved => f.write_str("it is approved already"),
            Self::Held(halt) => write!(f, "it is held {halt}"),
            Self::Paused(halt) => write!(f, "approvals are paused {halt}"),
            Self::OtherApproval(id) => write!(f, "this replica approved event {id}, which is not over"),
            Self::NotTakenUp => {
                write!(f, "{OPEN_LIMIT} events are open, and this one is taken up when one of them closes")
            }
            Self::JournalFull => f.write_str("the journal of this replica is full"),
            Self::LedElsewhere(name) => write!(f, "{name} hears a leader, which is to decide"),
            Self::TooSoon(_) => f.write_str("this replica has heard no leader for too short a time"),
            Self::NoVoter => f.write_str("this replica is no voter"),
        }
    }
}
