//! Groups and their members out of service, as shown to operators.

use allclear_core::assignments::vms_to_avoid_for_group;
use allclear_core::known_roles::{PrimaryFault, primary_faults};
use allclear_core::model::slot::SlotCause;
use allclear_core::model::state::State;
use allclear_core::model::workload::Member;
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::groups::{self, GroupAvailability};
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn all(state: &State, input: &PlanningInput) -> Vec<shown::Group> {
    let faults = primary_faults(state, input);
    let with_fault = |availability: GroupAvailability| {
        let fault = faults.iter().find(|(of, _)| *of == availability.group).map(|(_, fault)| told(fault));
        let avoid = vms_to_avoid_for_group(state, input, Some(&availability.group));
        let avoid = avoid.iter().map(ToString::to_string).collect();
        shown::Group { primary_fault: fault, avoid, ..shown(availability) }
    };
    groups::group_availability(state).into_iter().map(with_fault).collect()
}

fn shown(availability: GroupAvailability) -> shown::Group {
    let over_limit = over_limit(&availability);
    let member = |(member, cause): (Member, Option<SlotCause>)| shown::group::Member {
        workload: member.workload.to_string(),
        vm: member.vm.to_string(),
        unavailable_by: cause.map(|cause| by(&cause)),
    };
    shown::Group {
        name: availability.group.to_string(),
        max_unavailable: u32::try_from(availability.max_unavailable).unwrap_or(u32::MAX),
        members: availability.members.into_iter().map(member).collect(),
        primary_fault: None,
        over_limit,
        avoid: Vec::new(),
    }
}

fn over_limit(availability: &GroupAvailability) -> Option<String> {
    let out = availability.members.iter().filter(|(_, cause)| cause.is_some());
    let out: Vec<String> = out.map(|(member, _)| member.vm.to_string()).collect();
    let limit = availability.max_unavailable;
    (out.len() > limit)
        .then(|| format!("has {} members out of service, and its limit is {limit}: {}", out.len(), out.join(", ")))
}

fn told(fault: &PrimaryFault) -> String {
    let list = |members: &[Member]| members.iter().map(|member| member.vm.to_string()).collect::<Vec<_>>().join(", ");
    match fault {
        PrimaryFault::Absent(members) => format!("has no primary: {} all say replica", list(members)),
        PrimaryFault::Unknown { silent, others } => {
            format!("has no known primary: the role of {} is not known, and {} say replica", list(silent), list(others))
        }
        PrimaryFault::Several(members) => format!("has several primaries, by their last reports: {}", list(members)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::id::{GroupName, VmName, WorkloadName};

    #[test]
    fn a_group_with_more_members_out_than_its_limit_names_them() {
        let member = |vm: &str, is_out: bool| {
            let (vm, workload) = (VmName::new(vm), WorkloadName("pg".into()));
            let cause = is_out.then(|| SlotCause::Unreachable(vm.clone()));
            (Member { vm, workload }, cause)
        };
        let over = |out: [bool; 2]| {
            let members = vec![member("db-0", out[0]), member("db-1", out[1]), member("db-2", false)];
            shown(GroupAvailability { group: GroupName("orders".into()), max_unavailable: 1, members }).over_limit
        };
        assert_eq!(over([true, false]), None);
        let wanted = "has 2 members out of service, and its limit is 1: db-0, db-1";
        assert_eq!(over([true, true]).as_deref(), Some(wanted));
    }
}
