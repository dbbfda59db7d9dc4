//! Replicas possibly unaware of an operator request.

use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::PlanningInput;
use alloc::vec::Vec;

/// Replicas possibly unaware of an operator request. On each, once isolated, an event could be approved against the
/// request.
pub fn unaware_replicas(state: &State, input: &PlanningInput, number: u64) -> Vec<VmName> {
    let is_aware = |name: &VmName| input.peers.get(name).is_some_and(|contact| contact.operator_seq >= number);
    // A configured replica that never took part cannot act alone.
    let has_come = |name: &VmName| state.replicas.contains_key(name) || state.reconcile_states.contains_key(name);
    let voters = input.members.iter().filter(|name| !input.learners.contains(name) && has_come(name));
    let removed = state.suspects().filter(|name| !input.members.contains(name));
    voters.chain(removed).filter(|name| !is_aware(name)).cloned().collect()
}

/// Whether an isolated replica among these may approve a user-initiated event alone: each replica of a pair may (`SPEC.md`
/// 7.1), and so may a removed replica with an older list of voters.
pub fn may_approve_by_itself(input: &PlanningInput, unaware: &[VmName]) -> bool {
    let voters = input.members.iter().filter(|name| !input.learners.contains(*name)).count();
    !unaware.is_empty() && (voters <= 2 || unaware.iter().any(|name| !input.members.contains(name)))
}
