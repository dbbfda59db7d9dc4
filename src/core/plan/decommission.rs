//! Replicas that leave the log, in the view of the leader: their VMs were deleted, or an operator removed them.

use crate::model::command::{Command, DecommissionReplica};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::PlanningInput;
use crate::schedule::deletion::{deleted, has_begun, was_silenced};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Registered replicas whose VMs are being deleted, or are deleted. If the deletion was never seen as `Started`, a
/// replica that answers counts as not deleted.
pub fn departing(state: &State, input: &PlanningInput) -> Vec<VmName> {
    deleted(state, |event, name, replica| has_begun(event) || (!input.reaches(name) && was_silenced(event, replica)))
}

/// A member could register again at once, so the membership ends first: a removal that is refused or cut short changes
/// nothing here.
pub(crate) fn replica_to_remove(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let removed = state.replicas.keys().filter(|name| state.is_excluded(name)).cloned();
    let leaving: BTreeSet<VmName> = departing(state, input).into_iter().chain(removed).collect();
    let gone = leaving.into_iter().filter(|name| !input.members.contains(name));
    gone.map(|replica| Command::DecommissionReplica(DecommissionReplica { replica }))
}
