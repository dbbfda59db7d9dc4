//! Finds the hook of an id, also after the workload was registered anew.

use crate::model::attempt::Attempt;
use crate::model::hook_id::HookId;
use crate::model::id::{VmName, WorkloadName};
use crate::model::state::{Replica, State};
use crate::model::workload::{Hook, Member, Workload};
use alloc::format;
use alloc::string::String;

impl Replica {
    /// The workload of this name that has the hook: the current registration, or the registration from when the restore
    /// became mandatory.
    pub fn keeper(&self, member: &Member, id: HookId) -> Option<&Workload> {
        let known = self.workload(&member.workload).filter(|workload| workload.hook(id).is_some());
        known.or_else(|| self.owed_workloads.get(&member.workload).filter(|former| former.hook(id).is_some()))
    }
}

impl State {
    pub fn keeper(&self, member: &Member, id: HookId) -> Option<&Workload> {
        self.replicas.get(&member.vm)?.keeper(member, id)
    }

    pub fn hook(&self, member: &Member, id: HookId) -> Option<&Hook> {
        self.keeper(member, id)?.hook(id)
    }

    /// The hook by which a VM runs an attempt: the member's own hook, or the counterpart for a member of another VM.
    pub fn hook_run_on(&self, vm: &VmName, member: &Member, id: HookId) -> Option<HookId> {
        if *vm == member.vm {
            return Some(id);
        }
        let keeper = self.keeper(member, id)?;
        // A hook that is not registered any more is matched by name only: the positions of the remaining hooks have
        // changed.
        let is_former = self.workload(member).is_none_or(|workload| workload.hook(id).is_none());
        if is_former && keeper.hook(id)?.name.is_none() {
            return None;
        }
        let own = self.replicas.get(vm)?.workload(&member.workload)?;
        own.counterpart(keeper, id).filter(|_| own.group == keeper.group)
    }

    /// The VM may have to run a hook that the configuration, with these hooks, no longer contains.
    pub fn may_still_run<'a>(
        &self,
        vm: &VmName,
        workload: &WorkloadName,
        id: HookId,
        mut configured: impl Iterator<Item = &'a (WorkloadName, HookId)>,
    ) -> bool {
        let Some(replica) = self.replicas.get(vm) else { return true };
        let is_known = |(name, id): &(WorkloadName, HookId)| {
            replica.workloads.iter().any(|workload| workload.name == *name && workload.hook(*id).is_some())
        };
        // Mandatory restores are known once the present configuration is registered.
        let is_registered = configured.all(is_known)
            && !replica.workloads.iter().any(|known| known.name == *workload && known.hook(id).is_some());
        let is_owed = || replica.owed_workloads.get(workload).is_some_and(|former| former.hook(id).is_some());
        let is_open = |attempt: &Attempt| {
            let is_of_hook = attempt.hook == id && attempt.member.workload == *workload;
            is_of_hook && attempt.on == *vm && attempt.outcome.is_none()
        };
        let mut attempts = self.open_events().flat_map(|event| &event.attempts);
        !is_registered || is_owed() || attempts.any(is_open)
    }

    /// The numbered name, which operators may use for a named hook, too: `db-0/postgres/drain#1`.
    pub fn hook_number(&self, member: &Member, id: HookId) -> String {
        let place = self.keeper(member, id).and_then(|workload| workload.place_of(id)).unwrap_or_default();
        format!("{}/{}#{}", member.path(), id.phase, place + 1)
    }

    /// The operators' name of a member's hook: `db-0/postgres/drain`, `db-0/postgres/drain#2`,
    /// `db-0/postgres/drain#NAME`. A hook that the workload no longer has is named by its digest.
    pub fn hook_name(&self, member: &Member, id: HookId) -> String {
        format!("{}/{}", member.path(), self.hook_label(member, id))
    }

    /// The end of `hook_name`, for texts that name the member elsewhere: `drain`, `drain#2`, `drain#NAME`.
    pub fn hook_label(&self, member: &Member, id: HookId) -> String {
        let known = self.keeper(member, id).and_then(|workload| workload.hook_name(id));
        let digest = || self.workload(member).map_or(String::new(), |_| format!("#{:016x}", id.key));
        known.unwrap_or_else(|| format!("{}{}", id.phase, digest()))
    }
}
