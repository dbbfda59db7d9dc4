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
    /// Not while this blocker lasts.
    Not(IsolatedBlocker),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IsolatedBlocker {
    /// Without a quorum only a user-initiated event is approved.
    NotUserInitiated,
    NotScheduled,
    /// Policy leaves the event to others.
    Observed,
    /// The other voters of three or more may have a quorum.
    NotAPair,
    /// The event names a VM other than the VM of the unreachable replica.
    TakesMoreAway(VmName),
    /// This replica's own workload is out or not ready, and would be the last member.
    OwnMemberOut(WorkloadName),
    /// A hook failed permanently and holds the event.
    HookFailed,
    /// A committed hook may run until this time.
    HookMayRun(Timestamp),
    /// The event would not be the only event of its group.
    OtherEvent(EventId),
    Approved,
    /// An operator holds the event.
    Held(Suspension),
    /// An operator paused all approvals.
    Paused(Suspension),
    /// This replica approved another event, which is not over.
    OtherApproval(EventId),
    JournalFull,
    /// The log has the maximum number of open events, and this event is not one of them.
    NotTakenUp,
    /// Another voter has a leader.
    LedElsewhere(VmName),
    /// This replica may find a leader again until this time.
    TooSoon(Timestamp),
    NoVoter,
}

impl fmt::Display for IsolatedBlocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUserInitiated => f.write_str("the event is not user-initiated"),
            Self::NotScheduled => {
                f.write_str("the metadata endpoint of this replica does not list the event as Scheduled")
            }
            Self::Observed => f.write_str("policy leaves the event to other approvers"),
            Self::NotAPair => f.write_str("the other voters may have a quorum without this replica"),
            Self::TakesMoreAway(vm) => {
                write!(f, "the event names {vm}, and the replica on that VM is not known to be lost")
            }
            Self::OwnMemberOut(workload) => write!(f, "the workload {workload} of this replica is not in service"),
            Self::HookFailed => f.write_str("a hook of the event failed, and holds the event"),
            Self::HookMayRun(_) => f.write_str("a hook of the event may still run"),
            Self::OtherEvent(id) => write!(f, "event {id} is open in the same group"),
            Self::Approved => f.write_str("the event is approved already"),
            Self::Held(halt) => write!(f, "the event is held {halt}"),
            Self::Paused(halt) => write!(f, "approvals are paused {halt}"),
            Self::OtherApproval(id) => write!(f, "this replica approved event {id}, and that event is not over"),
            Self::NotTakenUp => {
                write!(
                    f,
                    "{OPEN_LIMIT} events are open, which is the limit; this event is handled when another event \
                           closes"
                )
            }
            Self::JournalFull => f.write_str("the journal of this replica is full"),
            Self::LedElsewhere(name) => write!(f, "{name} follows a leader, and the leader decides"),
            Self::TooSoon(_) => f.write_str("this replica has had no leader for too short a time"),
            Self::NoVoter => f.write_str("this replica is not a voter"),
        }
    }
}
