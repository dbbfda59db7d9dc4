//! The owner of a workload's name. A workload decides how its VM is prepared. So a session may take a name or a group
//! of the configuration only with the configuration's permission, and a registered name only as its owner; and no user
//! removes a hook for which an open event waits.

mod rejection;

pub use self::rejection::{OwnershipError, RemovalError};
use crate::model::event::Event;
use crate::model::id::{GroupName, VmName, WorkloadName};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::workload::{Hook, Member, Origin, Phase, Workload};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The permissions that a replica's configuration grants to users of its machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Grants {
    /// Root, and the replica's own user, with all permissions.
    pub trusted: Vec<u32>,
    /// The users that may register a member of a group; a group without an entry is open to no user.
    pub groups: BTreeMap<GroupName, Vec<u32>>,
    /// For every configured workload, the users that may register under its name.
    pub workloads: BTreeMap<WorkloadName, Vec<u32>>,
    /// The group of each configured workload that has one.
    pub groups_of: BTreeMap<WorkloadName, GroupName>,
}

impl Grants {
    pub fn uids(&self) -> impl Iterator<Item = u32> {
        self.groups.values().chain(self.workloads.values()).flatten().copied()
    }

    pub fn trusts(&self, uid: u32) -> bool {
        self.trusted.contains(&uid)
    }

    fn check(&self, workload: &Workload, uid: u32) -> Result<(), OwnershipError> {
        if self.trusts(uid) {
            return Ok(());
        }
        let name = &workload.name;
        if self.workloads.get(name).is_some_and(|uids| !uids.contains(&uid)) {
            return Err(OwnershipError::Configured(name.clone()));
        }
        let is_open = |group: &GroupName| self.groups.get(group).is_some_and(|uids| uids.contains(&uid));
        match workload.group.as_ref().filter(|group| !is_open(group)) {
            Some(group) => Err(OwnershipError::Group(group.clone())),
            None => Ok(()),
        }
    }
}

impl Grants {
    /// Without any `[[group]]` every group has the defaults. A session in place of a configured workload stays in its
    /// group: otherwise the budget of the group would no longer count the member, and its primary would have one member
    /// less to move to.
    fn check_group(&self, workload: &Workload) -> Result<(), OwnershipError> {
        if let Some(group) = self.groups_of.get(&workload.name).filter(|group| workload.group.as_ref() != Some(*group))
        {
            return Err(OwnershipError::LeavesGroup { name: workload.name.clone(), group: group.clone() });
        }
        match workload.group.as_ref().filter(|group| !self.groups.is_empty() && !self.groups.contains_key(*group)) {
            Some(group) => {
                let defined = self.groups.keys().cloned().collect();
                Err(OwnershipError::UndefinedGroup { group: group.clone(), defined })
            }
            None => Ok(()),
        }
    }
}

impl Workload {
    /// The user that registered the workload; `None` for a configured workload.
    pub fn owner(&self) -> Option<u32> {
        match self.origin {
            Origin::Configured => None,
            Origin::Session { owner } => Some(owner),
        }
    }

    /// What an event may require of this workload, and not of `other` or in a different way.
    fn lost_in(&self, other: &Self) -> Option<String> {
        if self.group != other.group {
            return Some("`group`".into());
        }
        if self.on_absent != other.on_absent {
            return Some("`on_absent`".into());
        }
        if let Some(name) = self.after.iter().find(|name| !other.after.contains(name)) {
            return Some(format!("{name} in `after`"));
        }
        let is_kept = |hook: &&Hook| other.hooks.iter().any(|it| it.is_same_registration(hook));
        let lost = self.hooks.iter().find(|hook| !is_kept(hook))?;
        let hook = lost.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        let hook = format!("the {} hook{hook}", lost.phase);
        let is_namesake = |it: &&Hook| (it.phase, &it.name) == (lost.phase, &lost.name);
        let new: Vec<_> = other.hooks.iter().filter(is_namesake).collect();
        let is_only_one = self.hooks.iter().filter(is_namesake).count() == 1;
        Some(match &new[..] {
            [] => hook,
            [new] if is_only_one => format!("`{}` of {hook}", lost.changed_settings(new).join("` and `")),
            _ => format!("{hook}, or a setting of it"),
        })
    }
}

impl Hook {
    /// The settings that differ, in the names of `workload.proto`.
    fn changed_settings(&self, other: &Self) -> Vec<&'static str> {
        let settings = [
            ("timeout_ms", self.timeout != other.timeout),
            ("attempts", self.max_attempts != other.max_attempts),
            ("on_failure", self.on_failure != other.on_failure),
            ("runs_on", self.runs_on != other.runs_on),
            ("can_confirm", self.can_confirm != other.can_confirm),
            ("can_undo", self.can_undo != other.can_undo),
            ("can_dry_run", self.can_dry_run != other.can_dry_run),
            ("min_freeze_ms", self.min_freeze != other.min_freeze),
            ("fresh_for_ms", self.fresh_for != other.fresh_for),
            ("optional_if_short", self.optional_if_short != other.optional_if_short),
            ("worst_ms", self.worst != other.worst),
            ("exclusive", self.exclusive != other.exclusive),
            ("event_types", self.event_types != other.event_types),
        ];
        settings.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }
}

impl State {
    /// Whether the workload's user may register the workload on this VM.
    pub fn may_register(&self, vm: &VmName, workload: &Workload, grants: &Grants) -> Result<(), OwnershipError> {
        workload.owner().map_or(Ok(()), |uid| grants.check(workload, uid))?;
        let known = self.replicas.get(vm).and_then(|replica| replica.sessions.get(&workload.name));
        // During an event a registration cannot change its group, whatever the configuration says by now.
        let must_stay = self.prepares(vm).is_some() && known.is_some_and(|known| known.group == workload.group);
        if !must_stay {
            grants.check_group(workload)?;
        }
        if known.is_none() {
            self.may_take_configured(vm, workload)?;
        }
        self.may_replace(vm, workload)
    }

    /// Whether the first registration under the name of a configured workload leaves the open event all phases.
    fn may_take_configured(&self, vm: &VmName, workload: &Workload) -> Result<(), OwnershipError> {
        let configured = self.replicas.get(vm).and_then(|replica| replica.workload(&workload.name));
        let Some((configured, event)) = configured.zip(self.prepares(vm)) else { return Ok(()) };
        let prepares = |phase: Phase| !matches!(phase, Phase::Check | Phase::Restore | Phase::Ready);
        let mut phases = configured.hooks.iter().map(|hook| hook.phase).filter(|phase| prepares(*phase));
        match phases.find(|phase| workload.hooks.iter().all(|hook| hook.phase != *phase)) {
            Some(phase) => {
                Err(OwnershipError::Lacks { name: workload.name.clone(), phase, event: event.announcement.id.clone() })
            }
            None => Ok(()),
        }
    }

    /// Whether an operator may remove the member's registration from the replica on `own`, also during an event.
    pub fn may_remove_registration(&self, own: &VmName, member: &Member) -> Result<(), RemovalError> {
        if member.vm != *own {
            return Err(RemovalError::Elsewhere);
        }
        let replica = self.replicas.get(own).filter(|it| it.workload(&member.workload).is_some());
        let replica = replica.ok_or(RemovalError::Unknown)?;
        if !replica.sessions.contains_key(&member.workload) {
            return Err(RemovalError::Configured);
        }
        if replica.condition(&member.workload).connected { Err(RemovalError::Connected) } else { Ok(()) }
    }

    /// Session workloads of this VM that connected before the configuration withdrew the permission for their names or
    /// groups.
    pub fn no_longer_granted(&self, vm: &VmName, grants: &Grants) -> Vec<WorkloadName> {
        let dialled = self.replicas.get(vm).into_iter().flat_map(|replica| replica.sessions.values());
        let is_refused =
            |workload: &&Workload| workload.owner().is_some_and(|uid| grants.check(workload, uid).is_err());
        dialled.filter(is_refused).map(|workload| workload.name.clone()).collect()
    }

    /// Whether this registration may replace the registration of its name, regardless of the caller.
    pub(crate) fn may_replace(&self, vm: &VmName, workload: &Workload) -> Result<(), OwnershipError> {
        let name = &workload.name;
        let Some(known) = self.replicas.get(vm).and_then(|replica| replica.sessions.get(name)) else { return Ok(()) };
        if let Some(by) = known.owner().filter(|_| known.owner() != workload.owner()) {
            return Err(OwnershipError::Owned { name: name.clone(), by });
        }
        if let Some((event, what)) = self.prepares(vm).and_then(|event| Some((event, known.lost_in(workload)?))) {
            return Err(OwnershipError::Changed { name: name.clone(), event: event.announcement.id.clone(), what });
        }
        self.keeps_restore(vm, known, workload)
    }

    /// Whether the new registration has the hooks that bring the member back. Without these hooks the member would count
    /// as in service at once.
    fn keeps_restore(&self, vm: &VmName, known: &Workload, workload: &Workload) -> Result<(), OwnershipError> {
        let Some(slot) = self.slots.get(&known.on(vm)) else { return Ok(()) };
        let has = |workload: &Workload, phase| workload.hooks.iter().any(|hook| hook.phase == phase);
        let phases: &[Phase] = if slot.needs_restore { &[Phase::Restore, Phase::Ready] } else { &[Phase::Ready] };
        let lost = phases.iter().copied().find(|phase| has(known, *phase) && !has(workload, *phase));
        lost.map_or(Ok(()), |phase| {
            Err(OwnershipError::OwesRestore { name: workload.name.clone(), phase, event: slot.by.clone() })
        })
    }

    /// Whether this user may end the registration. With `force` a trusted user may do so during an event.
    pub fn may_deregister(
        &self,
        vm: &VmName,
        name: &WorkloadName,
        (uid, grants): (u32, &Grants),
        force: bool,
    ) -> Result<(), OwnershipError> {
        let Some(known) = self.replicas.get(vm).and_then(|replica| replica.sessions.get(name)) else { return Ok(()) };
        if let Some(by) = known.owner().filter(|by| !grants.trusts(uid) && *by != uid) {
            return Err(OwnershipError::Owned { name: name.clone(), by });
        }
        match self.needs(&known.on(vm)).filter(|_| !(force && grants.trusts(uid))) {
            Some(event) => Err(OwnershipError::Needed { name: name.clone(), event: event.announcement.id.clone() }),
            None => Ok(()),
        }
    }

    /// The event for which the workloads of this VM are prepared. A started event has no pending preparation, and a
    /// database that comes back with other hooks has to be accepted, or no replica could restore the database.
    fn prepares(&self, vm: &VmName) -> Option<&Event> {
        let has_begun = |event: &Event| matches!(event.stage(), Stage::Started | Stage::Restoring | Stage::Closed);
        self.open_events().find(|event| event.affects(vm) && !has_begun(event))
    }

    /// Whether an event that is not over prepares the member, or the member is out of its group: without the registration
    /// the group would not count the member, and the next event would take another one.
    pub(crate) fn is_being_prepared(&self, member: &Member) -> bool {
        let prepares = |event: &Event| event.affects(&member.vm) || event.was_prepared(member);
        self.slots.get(member).is_some_and(|slot| slot.needs_restore && slot.group.is_some())
            || self.open_events().any(|event| !event.stage().is_over() && prepares(event))
    }

    /// The open event that has the member prepared, or has yet to restore the member.
    fn needs(&self, member: &Member) -> Option<&Event> {
        self.open_events().find(|event| event.affects(&member.vm) || event.was_prepared(member))
    }
}

#[cfg(test)]
mod tests;
