//! The workloads as shown to operators, with their roles.

use crate::clock::rfc3339;
use allclear_core::known_roles::{KnownRole, known_role};
use allclear_core::model::id::VmName;
use allclear_core::model::state::State;
use allclear_core::model::workload::Workload;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn last_role(known: KnownRole) -> Option<shown::LastRole> {
    let last = known.last?;
    Some(shown::LastRole { role: last.role.as_str().into(), unreachable_since: last.unreachable_since.map(rfc3339) })
}

/// Every registered workload.
pub(super) fn all(state: &State, input: &PlanningInput) -> Vec<shown::Workload> {
    let shown = |vm: &VmName, workload: &Workload| {
        let member = workload.on(vm);
        let condition = state.condition(&member).unwrap_or_default();
        let role = known_role(state, input, &member);
        let mut phases: Vec<_> = workload.hooks.iter().map(|hook| hook.phase).collect();
        phases.sort_unstable();
        phases.dedup();
        shown::Workload {
            name: workload.name.to_string(),
            group: workload.group.as_ref().map(ToString::to_string),
            vm: vm.to_string(),
            role: role.role.as_str().into(),
            last_role: last_role(role),
            connected: condition.connected && input.reaches(vm),
            phases: phases.iter().map(ToString::to_string).collect(),
        }
    };
    state.workloads().map(|(vm, workload)| shown(vm, workload)).collect()
}
