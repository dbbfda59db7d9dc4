//! Parts of the offered commands and of their effects.

use super::super::{going_down, primaries};
use crate::clock::rfc3339;
use crate::sanitize::{is_misleading, quoted};
use allclear_core::model::time::Timestamp;
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

/// When to approve an event by hand. Once no document with the event counts, Azure may have started or ended the event.
pub(super) fn by_hand(event: &shown::Event, blocker: &shown::Blocker, last_document: Option<Timestamp>) -> String {
    let lacks = if blocker.code == "no_healthy_channel" {
        "the event may be approved, and lacks only an endpoint: if none can be repaired in time"
    } else {
        "the event may be approved, and its approval is refused again and again: if the cause cannot be mended in time"
    };
    let from = last_document.map_or_else(String::new, |at| format!(" (the last document is from {})", rfc3339(at)));
    let look = if event.status.is_some() {
        String::new()
    } else {
        format!(", and only after you have seen in the Azure portal that the event is still scheduled{from}")
    };
    format!(
        "{lacks}{look}, approve the event with the Azure CLI (extension maintenance), from any machine (of a scale set: \
         the type virtualMachineScaleSets, and the name of the set){}",
        unmoved_primary(event)
    )
}

/// What an approval takes down.
pub(super) fn unmoved_primary(event: &shown::Event) -> String {
    go_down(&primaries(event))
}

/// The end of a sentence about a command after which these primaries go down.
pub(super) fn go_down(primaries: &[String]) -> String {
    going_down(primaries).map_or_else(String::new, |told| format!("; {told}"))
}

/// The event as far as it takes down this member.
pub(super) fn of_member(event: &shown::Event, member: &str) -> shown::Event {
    let is_it = |down: &&shown::TakenDown| format!("{}/{}", down.vm, down.workload) == member;
    shown::Event { takes_down: event.takes_down.iter().filter(is_it).cloned().collect(), ..event.clone() }
}

/// When a hook runs that an operator lets run again, if a hold or a pause stops it: no hook but a checkpoint runs before the
/// last call, and none during a hold without hooks.
pub fn runs_from(event: &shown::Event) -> Option<String> {
    let is_paused = super::blockers(event).any(|blocker| blocker.code == "paused");
    match &event.hold {
        Some(hold) if hold.no_hooks => {
            let late = if hold.starts_before.is_empty() { "" } else { ", and Azure starts the event before that end" };
            Some(format!("only after you release the event, or at the end of the hold: the hold stops all hooks{late}"))
        }
        Some(hold) if !hold.starts_before.is_empty() => Some("at the latest shortly before the notice ends".into()),
        Some(_) if is_paused => {
            Some("at the latest when the hold and the pause have ended, or shortly before the notice ends".into())
        }
        Some(_) => Some("at the latest when the hold ends or shortly before the notice ends".into()),
        None => is_paused.then(|| "at the latest when the pause ends or shortly before the notice ends".into()),
    }
}

/// Effect and risks of an approval of the event without a quorum.
pub fn approve_alone(event: &shown::Event, alone: &shown::IsolatedApproval) -> String {
    let others = alone.other_voters.join(", ");
    // Of a pair nobody has a quorum without the other.
    let (quorum, unasked) = if alone.others_may_have_quorum {
        ("have a quorum, ", Some("the other voters may have a quorum, and decide otherwise"))
    } else {
        ("", None)
    };
    let known: Vec<&str> = unasked.into_iter().chain(alone.overrides.iter().map(String::as_str)).collect();
    let known = if known.is_empty() { "none".into() } else { known.join("; ") };
    format!(
        "approve the event on this replica alone; no hook runs for the event, and {others} may {quorum}hold the \
         event, or approve another event at the same time; objections that this replica knows: {known}{}",
        unmoved_primary(event)
    )
}
