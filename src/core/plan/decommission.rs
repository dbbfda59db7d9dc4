//! Replicas whose VM an event deletes, as the leader sees them.

use crate::model::command::{Command, DecommissionReplica};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::PlanningInput;
use crate::schedule::deletion::{deleted, has_begun, was_silenced};
use alloc::vec::Vec;

/// The registered replicas whose VMs are being deleted, or are deleted. Where nobody saw that begin, one that answers
/// is not.
pub fn departing(state: &State, input: &PlanningInput) -> Vec<VmName> {
    deleted(state, |event, name, replica| has_begun(event) || (!input.reaches(name) && was_silenced(event, replica)))
}

/// As long as a replica is a member it could register again at once, so its membership ends first.
pub(crate) fn replica_to_remove(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let gone = departing(state, input).into_iter().filter(|name| !input.members.contains(name));
    gone.map(|replica| Command::DecommissionReplica(DecommissionReplica { replica }))
}
