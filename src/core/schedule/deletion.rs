//! Replicas on VMs deleted by an event.

use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::{Replica, State};
use alloc::vec::Vec;
use core::time::Duration;

/// A replica that becomes silent later than this after the end of a deletion was not deleted by the event.
const SILENT_WITHIN: Duration = Duration::from_mins(5);

pub(crate) fn deleted(state: &State, by: impl Fn(&Event, &VmName, &Replica) -> bool) -> Vec<VmName> {
    let events: Vec<&Event> = state.events().filter(|event| event.deletes_vms()).collect();
    let is_deleted =
        |name: &VmName, replica: &Replica| events.iter().any(|event| event.affects(name) && by(event, name, replica));
    let replicas = state.replicas.iter().filter(|(name, replica)| is_deleted(name, replica));
    replicas.map(|(name, _)| name.clone()).collect()
}

pub(crate) fn has_begun(event: &Event) -> bool {
    event.entered_at(Stage::Started).is_some()
}

/// Whether the replica's document is stale, and was stale soon after the end of the event.
pub(crate) fn was_silenced(event: &Event, replica: &Replica) -> bool {
    let over = event.over_at();
    replica.stale_since.is_some_and(|since| over.is_some_and(|over| since <= over.plus(SILENT_WITHIN)))
}
