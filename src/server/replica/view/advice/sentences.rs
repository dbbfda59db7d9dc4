//! Parts of the offered commands and of their effects.

use super::super::primaries;
use crate::sanitize::{is_misleading, quoted};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The approval by hand through Azure's control plane, which needs no metadata endpoint.
pub(super) fn azure_line(id: &str, vm: &str) -> Option<String> {
    let is_harmless = !is_misleading(vm);
    is_harmless.then(|| {
        format!(
            "az maintenance scheduledevents acknowledge --subscription SUBSCRIPTION --resource-group GROUP \
             --resource-type virtualMachines --resource-name {} --scheduled-events-id {}",
            quoted(vm),
            quoted(id)
        )
    })
}

/// What an approval, or the skip of a failover, takes down.
pub(super) fn unmoved_primary(event: &shown::Event) -> String {
    let all = primaries(event);
    if all.is_empty() { String::new() } else { format!("; {}, which is NOT moved and goes down", all.join(" and ")) }
}

/// The event as far as it takes down this member.
pub(super) fn of_member(event: &shown::Event, member: &str) -> shown::Event {
    let is_it = |down: &&shown::TakenDown| format!("{}/{}", down.vm, down.workload) == member;
    shown::Event { takes_down: event.takes_down.iter().filter(is_it).cloned().collect(), ..event.clone() }
}

/// Effect and risks of an approval without a quorum.
pub(super) fn approve_alone(alone: &shown::IsolatedApproval) -> String {
    let others = alone.other_voters.join(", ");
    // Of a pair nobody has a quorum without the other.
    let quorum = if alone.other_voters.len() > 1 { "have a quorum, " } else { "" };
    let known = if alone.overrides.is_empty() { "none" } else { &alone.overrides.join("; ") };
    format!(
        "approve the event on this replica alone; no hook runs for the event, and {others} may {quorum}hold the \
         event, or approve another event at the same time; objections that this replica knows: {known}"
    )
}
