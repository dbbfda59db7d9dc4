//! Groups and their members out of service, as shown to operators.

use allclear_core::model::slot::SlotCause;
use allclear_core::model::state::State;
use allclear_core::schedule::groups;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn all(state: &State) -> Vec<shown::Group> {
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
    };
    standings.map(group).collect()
}

/// The name of the cause: the event, or the VM.
fn by(cause: &SlotCause) -> String {
    match cause {
        SlotCause::Event(id) | SlotCause::Returning(id) | SlotCause::Queue(id) => id.to_string(),
        SlotCause::Unreachable(vm) => vm.to_string(),
        SlotCause::NotReady(member) => member.vm.to_string(),
    }
}
