//! Groups and their members out of service, as shown to operators.

use allclear_core::known_roles::{PrimaryFault, primary_faults};
use allclear_core::model::id::GroupName;
use allclear_core::model::slot::SlotCause;
use allclear_core::model::state::State;
use allclear_core::model::workload::Member;
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::groups;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn all(state: &State, input: &PlanningInput) -> Vec<shown::Group> {
    let faults = primary_faults(state, input);
    let fault_of = |group: &GroupName| faults.iter().find(|(of, _)| of == group).map(|(_, fault)| told(fault));
    let standings = groups::group_availability(state).into_iter();
    let group = |availability: groups::GroupAvailability| shown::Group {
        name: availability.group.to_string(),
        max_unavailable: u32::try_from(availability.max_unavailable).unwrap_or(u32::MAX),
        members: availability
            .members
            .into_iter()
            .map(|(member, cause)| shown::group::Member {
                workload: member.workload.to_string(),
                vm: member.vm.to_string(),
                unavailable_by: cause.map(|cause| by(&cause)),
            })
            .collect(),
        primary_fault: fault_of(&availability.group),
    };
    standings.map(group).collect()
}

fn told(fault: &PrimaryFault) -> String {
    let list = |members: &[Member]| members.iter().map(|member| member.vm.to_string()).collect::<Vec<_>>().join(", ");
    match fault {
        PrimaryFault::Absent(members) => format!("has no primary: {} all say replica", list(members)),
        PrimaryFault::Several(members) => format!("has several primaries: {}", list(members)),
    }
}

/// The name of the cause: the event, or the VM.
fn by(cause: &SlotCause) -> String {
    match cause {
        SlotCause::Event(id) | SlotCause::Returning(id) | SlotCause::Queue(id) => id.to_string(),
        SlotCause::Unreachable(vm) => vm.to_string(),
        SlotCause::NotReady(member) => member.vm.to_string(),
    }
}
