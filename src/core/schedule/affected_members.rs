//! Members affected by an event.

use crate::model::event::Event;
use crate::model::id::{GroupName, VmName};
use crate::model::state::State;
use crate::model::workload::{Member, OnAbsent, Workload};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The members whose slots an event needs: affected members with a group or hooks. A dry run needs no slots.
pub fn needed<'a>(state: &'a State, event: &Event) -> Vec<(Member, Option<&'a GroupName>)> {
    if event.is_dry_run() {
        return Vec::new();
    }
    let matters = |workload: &Workload| workload.group.is_some() || !workload.hooks.is_empty();
    let members = affected(state, event).into_iter().filter(|(_, workload)| matters(workload));
    members.map(|(vm, workload)| (workload.on(vm), workload.group.as_ref())).collect()
}

/// The workloads on the VMs of an event, by VM.
pub(crate) fn affected<'a>(state: &'a State, event: &Event) -> Vec<(&'a VmName, &'a Workload)> {
    let named = event.announcement.resources.iter().filter(|vm| !event.departed.contains(*vm));
    let replicas: BTreeMap<_, _> = named.filter_map(|vm| state.replicas.get_key_value(vm)).collect();
    replicas.into_iter().flat_map(|(vm, replica)| replica.effective().map(move |workload| (vm, workload))).collect()
}

/// The `on_absent` setting of a disconnected session workload.
pub(crate) fn away(state: &State, member: &Member, workload: &Workload) -> Option<OnAbsent> {
    let is_absent = state.replicas.get(&member.vm).is_some_and(|replica| replica.is_absent(workload));
    is_absent.then_some(workload.on_absent)
}

/// The stints in which the event keeps its members out.
pub fn stints_of(state: &State, event: &Event) -> Vec<(Member, u64)> {
    let members = needed(state, event).into_iter().map(|(member, _)| member);
    members.filter_map(|member| state.stint(&event.announcement.id, &member).map(|stint| (member, stint))).collect()
}
