//! Replicas on VMs deleted by an event, in the view of the leader.

use crate::model::command::{Command, DecommissionReplica};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::PlanningInput;
use crate::schedule::deletion::{deleted, has_begun, was_silenced};
use alloc::vec::Vec;

/// Registered replicas whose VMs are being deleted, or are deleted. If the deletion was never seen as `Started`, a
/// replica that answers counts as not deleted.
pub fn departing(state: &State, input: &PlanningInput) -> Vec<VmName> {
    deleted(state, |event, name, replica| has_begun(event) || (!input.reaches(name) && was_silenced(event, replica)))
}

/// A member could register again at once, so the membership ends first.
pub(crate) fn replica_to_remove(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let gone = departing(state, input).into_iter().filter(|name| !input.members.contains(name));
    gone.map(|replica| Command::DecommissionReplica(DecommissionReplica { replica }))
}
