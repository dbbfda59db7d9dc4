//! Whose the name of a workload is. Whoever dials in under a name, or into a group, decides how the machine is prepared,
//! so the configuration's names and groups are taken only by those whom it gives them, a name that somebody registered by
//! nobody else, and what an open event waits for is taken away by nobody.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::event::Event;
use super::id::{EventId, GroupName, VmName, WorkloadName};
use super::state::State;
use super::workload::{Member, Origin, Workload};

/// What a replica's configuration gives to users of its machine, beside root and its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grants {
    /// Who may register a member of a group.
    pub groups: BTreeMap<GroupName, Vec<u32>>,
    /// Who may register under the name of a configured workload.
    pub workloads: BTreeMap<WorkloadName, Vec<u32>>,
}

impl Grants {
    pub fn uids(&self) -> impl Iterator<Item = u32> {
        self.groups.values().chain(self.workloads.values()).flatten().copied()
    }

    pub fn caller(&self, uid: u32, is_trusted: bool) -> Caller {
        let workloads = self.workloads.iter().filter(|(_, uids)| uids.contains(&uid));
        let groups = self.groups.iter().filter(|(_, uids)| uids.contains(&uid));
        Caller {
            uid,
            is_trusted,
            workloads: workloads.map(|(name, _)| name.clone()).collect(),
            groups: groups.map(|(name, _)| name.clone()).collect(),
        }
    }
}

/// A user of a replica's machine, as the kernel names it and that replica's configuration allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    pub uid: u32,
    /// Root, or the replica's own user.
    pub is_trusted: bool,
    /// Configured workloads as which it may dial in.
    pub workloads: Vec<WorkloadName>,
    /// Groups of which it may be a member.
    pub groups: Vec<GroupName>,
}

/// Why a registration, or the end of one, is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The name is one of the configuration's.
    Configured(WorkloadName),
    /// The group is not open to this user.
    Group(GroupName),
    /// Another user has registered the name.
    Owned { name: WorkloadName, by: u32 },
    /// An open event prepares what would be taken away, or has yet to put it back.
    Needed { name: WorkloadName, event: EventId },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured(name) => write!(
                f,
                "{name} is a workload of the replica's configuration: add your uid to its `workload.allow_uids`, or take \
                 another name"
            ),
            Self::Group(group) => write!(
                f,
                "group {group} is not open to you: add your uid to `group.allow_uids` of {group} in the replica's \
                 configuration"
            ),
            Self::Owned { name, by } => {
                write!(
                    f,
                    "{name} is the workload of uid {by}: only that user, root and the replica's own may change it"
                )
            }
            Self::Needed { name, event } => write!(
                f,
                "event {event} is open and has {name} prepared or put back: wait until it is over; what it was registered \
                 with stays until then"
            ),
        }
    }
}

impl Workload {
    /// The user that registered it; `None` where the configuration has it.
    pub fn owner(&self) -> Option<u32> {
        match self.origin {
            Origin::Configured => None,
            Origin::Dialled { owner } => Some(owner),
        }
    }

    /// Something that an event may ask of this one would not be asked of the other, or otherwise.
    fn is_more_than(&self, other: &Self) -> bool {
        self.group != other.group
            || self.on_absent != other.on_absent
            || self.after.iter().any(|name| !other.after.contains(name))
            || self.hooks.iter().any(|hook| !other.hooks.iter().any(|it| it.says_what(hook)))
    }
}

impl State {
    /// Whether the caller may dial in at this VM as this workload.
    pub fn may_enlist(&self, vm: &VmName, workload: &Workload, caller: &Caller) -> Result<(), Refusal> {
        let Some(replica) = self.replicas.get(vm) else { return Ok(()) };
        let name = &workload.name;
        if !caller.is_trusted {
            let is_configured = replica.workloads.iter().any(|known| known.name == *name);
            if is_configured && !caller.workloads.contains(name) {
                return Err(Refusal::Configured(name.clone()));
            }
            if let Some(group) = workload.group.as_ref().filter(|group| !caller.groups.contains(group)) {
                return Err(Refusal::Group(group.clone()));
            }
        }
        self.may_replace(vm, workload)
    }

    /// Whether this registration may take the place of the one of its name, whoever asks.
    pub(super) fn may_replace(&self, vm: &VmName, workload: &Workload) -> Result<(), Refusal> {
        let name = &workload.name;
        let Some(known) = self.replicas.get(vm).and_then(|replica| replica.dialled.get(name)) else { return Ok(()) };
        if let Some(by) = known.owner().filter(|_| known.owner() != workload.owner()) {
            return Err(Refusal::Owned { name: name.clone(), by });
        }
        match self.needs(&known.on(vm)).filter(|_| known.is_more_than(workload)) {
            Some(event) => Err(Refusal::Needed { name: name.clone(), event: event.announcement.id.clone() }),
            None => Ok(()),
        }
    }

    /// Whether the caller may end this registration. With force whoever is trusted may do so during an event.
    pub fn may_delist(&self, vm: &VmName, name: &WorkloadName, caller: &Caller, force: bool) -> Result<(), Refusal> {
        let Some(known) = self.replicas.get(vm).and_then(|replica| replica.dialled.get(name)) else { return Ok(()) };
        if let Some(by) = known.owner().filter(|by| !caller.is_trusted && *by != caller.uid) {
            return Err(Refusal::Owned { name: name.clone(), by });
        }
        match self.needs(&known.on(vm)).filter(|_| !(force && caller.is_trusted)) {
            Some(event) => Err(Refusal::Needed { name: name.clone(), event: event.announcement.id.clone() }),
            None => Ok(()),
        }
    }

    /// The open event that has the member prepared, or has yet to put it back.
    fn needs(&self, member: &Member) -> Option<&Event> {
        self.open_events().find(|event| event.affects(&member.vm) || event.touched(member))
    }
}
