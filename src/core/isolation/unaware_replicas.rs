//! Replicas that may not know an operator request yet and could approve against it.

use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::PlanningInput;
use alloc::vec::Vec;

/// Whoever may not know of a wish yet and could come to act alone: cut off, it would approve against it.
pub fn unaware_replicas(state: &State, input: &PlanningInput, number: u64) -> Vec<VmName> {
    let is_aware = |name: &VmName| input.peers.get(name).is_some_and(|contact| contact.operator_seq >= number);
    // One that is configured and never took part cannot act alone.
    let has_come = |name: &VmName| state.replicas.contains_key(name) || state.reconcile_states.contains_key(name);
    let voters = input.members.iter().filter(|name| !input.learners.contains(name) && has_come(name));
    let removed = state.suspects().filter(|name| !input.members.contains(name));
    voters.chain(removed).filter(|name| !is_aware(name)).cloned().collect()
}
