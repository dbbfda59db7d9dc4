//! The slot of a member: the right to be out of service, and the progress of the member out of service and back
//! (`SPEC.md` 8). A registered member without a slot is in service.

use crate::model::id::{EventId, GroupName, VmName};
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::collections::BTreeSet;
use core::fmt;

/// A taken slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// The number of this stint, unique in a cluster. A hook counts only in the stint in which the hook began.
    pub stint: u64,
    /// The first stint since the member's last restore: hooks that began since then are undone.
    pub first_stint: u64,
    pub state: SlotState,
    /// Time since which `state` has its value.
    pub since: Timestamp,
    /// The member's group when the slot was taken; the current registration may differ or be missing.
    pub group: Option<GroupName>,
    /// The open events that keep the member out.
    pub events: BTreeSet<EventId>,
    /// The event that took the slot last. The member is restored for this event.
    pub by: EventId,
    /// When the slot was taken, the member was reachable and ready, and the last restore had not failed.
    pub was_fit: bool,
    /// The slot was taken again after a failed restore.
    pub restore_failed: bool,
    /// A disruptive hook was started, and no restore has succeeded since.
    pub needs_restore: bool,
}

/// The progress of a member with a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlotState {
    /// Disruptive hooks run, or are about to.
    Leaving,
    /// An event that names the member is claimed, approved or started.
    Out,
    /// No event keeps the member out: the member is restored, and asked for its readiness.
    Returning,
    /// The member's VM was deleted. Nothing is restored; the slot is free when another member joins the group.
    Gone,
}

string_enum!(SlotState { Leaving => "leaving", Out => "out_of_service", Returning => "returning", Gone => "gone" });

/// Why a member counts as not in service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SlotCause {
    /// The event keeps the member out.
    Event(EventId),
    /// The event is over or has released the slot, and the member is not back yet.
    Returning(EventId),
    /// The member's replica is unreachable.
    Unreachable(VmName),
    /// The member answers "not ready", or does not answer.
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
    /// Only the member's recovery ends the cause, no event of the cluster.
    pub const fn is_sickness(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NotReady(_) | Self::Returning(_) => true,
            Self::Event(_) | Self::Queue(_) => false,
        }
    }
}
