//! The slot of a member: the right to be out of service, and how far the member is on its way out and back
//! (`members.md` 1). A registered member without a slot is in service.

use crate::model::id::{EventId, GroupName, VmName};
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::collections::BTreeSet;
use core::fmt;

/// A taken slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// The number of this taking, unique in a cluster. A hook counts only in the stint in which it was begun.
    pub stint: u64,
    /// The number of the taking since which the member was not restored: what was begun since then is taken back.
    pub first_stint: u64,
    pub state: SlotState,
    /// Since when `state` is what it is.
    pub since: Timestamp,
    /// The member's group as the slot was taken; the member may be registered otherwise, or not at all, by now.
    pub group: Option<GroupName>,
    /// The open events that keep the member out.
    pub events: BTreeSet<EventId>,
    /// The event that took the slot last. The member is restored on its account.
    pub by: EventId,
    /// As the slot was taken, the member was reachable and ready, and its last restore had not failed.
    pub was_fit: bool,
    /// It was taken again after a restore that failed.
    pub restore_failed: bool,
    /// A disruptive hook was begun, and no restore has ended well since.
    pub needs_restore: bool,
}

/// How far a member with a slot is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlotState {
    /// Disruptive hooks run, or are about to.
    Leaving,
    /// An event that names the member is claimed, approved or started.
    Out,
    /// No event keeps the member out: it is restored, and asked whether it is ready.
    Returning,
    /// The member's VM was deleted. Nothing is restored; the slot is free when another member joins the group.
    Gone,
}

string_enum!(SlotState { Leaving => "leaving", Out => "out_of_service", Returning => "returning", Gone => "gone" });

/// Why a member counts as not in service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SlotCause {
    /// The event keeps it out.
    Event(EventId),
    /// The event is over or has given the slot back, and the member is not back yet.
    Returning(EventId),
    /// Its replica is unreachable.
    Unreachable(VmName),
    /// It answers that it is not ready, or does not answer.
    NotReady(Member),
    /// The event is earlier in the order and lacks a slot of the group.
    Queue(EventId),
}

impl fmt::Display for SlotCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(id) => write!(f, "{id}"),
            Self::Returning(id) => write!(f, "{id} (not restored)"),
            Self::Unreachable(name) => write!(f, "{name}"),
            Self::NotReady(member) => write!(f, "{member} (not ready)"),
            Self::Queue(id) => write!(f, "{id} (before it)"),
        }
    }
}

impl SlotCause {
    /// Only the member's recovery ends it, no event of the cluster.
    pub const fn is_sickness(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NotReady(_) | Self::Returning(_) => true,
            Self::Event(_) | Self::Queue(_) => false,
        }
    }
}
