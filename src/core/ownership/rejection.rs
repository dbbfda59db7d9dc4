//! Why a registration, a deregistration or a removal is rejected, in words.

use crate::model::id::{EventId, GroupName, WorkloadName};
use crate::model::workload::Phase;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why a registration or a deregistration is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnershipError {
    /// The name belongs to the configuration.
    Configured(WorkloadName),
    /// The group is not open to this user.
    Group(GroupName),
    /// Another user has registered the name.
    Owned { name: WorkloadName, by: u32 },
    /// An open event needs the removed registration for preparation, or has yet to restore the workload.
    Needed { name: WorkloadName, event: EventId },
    /// An open event prepares the workload, and the registration lacks or changes this.
    Changed { name: WorkloadName, event: EventId, what: String },
    /// The configuration defines groups, and not this one: the member would have a budget of its own.
    UndefinedGroup { group: GroupName, defined: Vec<GroupName> },
    /// The configured workload of this name has a hook that an open event needs, and the registration has none of the
    /// phase.
    Lacks { name: WorkloadName, phase: Phase, event: EventId },
    /// The member is prepared for an event, and the registration lacks a hook that brings the member back.
    OwesRestore { name: WorkloadName, phase: Phase, event: EventId },
    /// The configured workload of this name is a member of a group. The registration would take the workload out of the
    /// group.
    LeavesGroup { name: WorkloadName, group: GroupName },
}

/// Why an operator may not remove a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovalError {
    /// The registration is with the replica of the member's VM.
    Elsewhere,
    Unknown,
    Configured,
    /// A connected workload would register again.
    Connected,
}

impl fmt::Display for RemovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elsewhere => "the registration is with the replica of its VM: run the command there",
            Self::Unknown => "there is no such workload; `allclear workload list` has all workloads",
            Self::Configured => {
                "the workload stands in the configuration: remove its tables there, and restart the replica"
            }
            Self::Connected => "the workload is connected, and would register again: stop the workload first",
        })
    }
}

impl fmt::Display for OwnershipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured(name) => write!(
                f,
                "{name} is a workload of the replica's configuration: add your uid to `workload.allow_uids` of \
                 {name}, or use another name"
            ),
            Self::Group(group) => write!(
                f,
                "your uid may not register in group {group}: name a group of the replica's configuration with your \
                 uid in its `allow_uids`"
            ),
            Self::Owned { name, by } => {
                write!(
                    f,
                    "{name} is the workload of uid {by}: only that user, root and the replica's own user may change \
                     the workload"
                )
            }
            Self::Needed { name, event } => write!(
                f,
                "event {event} affects this VM and is not over for all of its workloads, so the registration of {name} \
                 cannot end: wait until the event is over (`allclear explain {event}` names what it waits for), or, if \
                 the workload never connects again, run `allclear workload remove` on its VM"
            ),
            Self::Changed { name, event, what } => write!(
                f,
                "event {event} is open and prepares {name}, and this registration lacks or changes {what}: register as \
                 before, with further hooks and names in `after` if you like, and change the rest when the event has \
                 started or is over"
            ),
            Self::UndefinedGroup { group, defined } => {
                write!(f, "group: {:?} is no group of the replica's configuration; its groups are ", group.0)?;
                for (place, name) in defined.iter().enumerate() {
                    write!(f, "{}{name}", if place > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
            Self::Lacks { name, phase, event } => write!(
                f,
                "event {event} is open, and the configured workload {name} has a {phase} hook that the event may need: \
                 register a {phase} hook too, or connect again when the event is over"
            ),
            Self::OwesRestore { name, phase, event } => write!(
                f,
                "event {event} took {name} out of service, and its {phase} hook brings it back: register the {phase} \
                 hook too, or declare the workload restored with `allclear workload restored`"
            ),
            Self::LeavesGroup { name, group } => write!(
                f,
                "group: the configured workload {name} is a member of group {group}, and this registration would take \
                 it out of the group: register in group {group}, or use another name; an earlier registration ends \
                 with `allclear workload remove`"
            ),
        }
    }
}
