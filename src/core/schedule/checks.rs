//! When the `check` hooks of a workload may run outside of events (`SPEC.md` 8).

use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::workload::Member;

/// Whether every member of the group is in service and reachable, and no event of the group is under way.
///
/// A check looks at the whole group, and would take a member out of service for a fault. A check may also start a
/// server, and must not run beside hooks that stop the server.
pub fn may_check(state: &State, member: &Member) -> bool {
    let Some(own) = state.workload(member) else { return false };
    let mut concerned = state.workloads().filter(|(vm, other)| {
        let is_of_group = own.group.is_some() && other.group == own.group;
        **vm == member.vm || is_of_group
    });
    concerned.all(|(vm, other)| is_undisturbed(state, vm, &other.on(vm)))
}

/// Whether the member is in service and reachable, and no event of its VM is under way.
pub fn is_undisturbed(state: &State, vm: &VmName, member: &Member) -> bool {
    let is_reachable = state.replicas.get(vm).is_some_and(|replica| replica.unreachable.is_none());
    is_reachable && !state.slots.contains_key(member) && !state.open_events().any(|event| is_under_way(event, vm))
}

/// An event announced days ahead, or left to another approver, is under way when a hook begins or Azure acts.
fn is_under_way(event: &Event, vm: &VmName) -> bool {
    event.affects(vm) && (event.stage() > Stage::Preparing || !event.attempts.is_empty())
}

#[cfg(test)]
mod tests;
