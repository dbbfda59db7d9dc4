//! Removes replicas on VMs deleted by an event (`SPEC.md` 9.6), and replicas that an operator removed (10.1a), with the
//! workloads. A later replica with this name is a new replica.

use crate::apply::access::Applied;
use crate::apply::report;
use crate::apply::slots;
use crate::model::attempt::{Attempt, Outcome};
use crate::model::command::Rejection;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::state::{Replica, State};
use crate::schedule::deletion::{deleted, has_begun, was_silenced};
use alloc::sync::Arc;

pub(crate) fn decommission_replica(state: &mut State, replica: &VmName) -> Applied {
    if !state.replicas.contains_key(replica) {
        return Err(Rejection::UnknownReplica);
    }
    let by_event = |event: &Event, _: &VmName, replica: &Replica| has_begun(event) || was_silenced(event, replica);
    let is_deleted = deleted(state, by_event).contains(replica);
    if !is_deleted && !state.is_excluded(replica) {
        return Err(Rejection::NotDue);
    }
    let gone = state.replicas.remove(replica);
    for announcement in gone.iter().filter_map(|gone| gone.document.as_ref()).flat_map(|document| &document.events) {
        report::refresh_announcement(state, &announcement.id);
    }
    if is_deleted {
        // A machine that does not exist approves nothing.
        state.reconcile_states.remove(replica);
        mark_departed(state, replica);
    }
    let (now, how) = (state.now, if is_deleted { "deleted" } else { "removed" });
    // Hooks run by the replica for other members may still run: no hook of these members begins before the latest end
    // of such a hook.
    let is_lost =
        |attempt: &Attempt| attempt.member.vm == *replica && attempt.on == *replica && attempt.outcome.is_none();
    for event in state.open.values_mut().filter(|event| event.attempts.iter().any(is_lost)) {
        let event = Arc::make_mut(event);
        for attempt in event.attempts.iter_mut().filter(|attempt| is_lost(attempt)) {
            attempt.outcome = Some((Outcome::Unknown(alloc::format!("{replica} was {how}")), now));
            event.revision += 1;
        }
    }
    if is_deleted {
        slots::drop_members_of(state, replica);
    } else {
        state.slots.retain(|member, _| member.vm != *replica);
        report::reconsider_events_of(state, replica);
    }
    report::move_events_by_documents(state);
    Ok(())
}

/// Marks a deleted or newly registered name: an event that deleted the name's former VM no longer affects the name.
pub(crate) fn mark_departed(state: &mut State, name: &VmName) {
    for event in state.open.values_mut().chain(&mut state.history) {
        if event.deletes_vms() && event.affects(name) {
            let event = Arc::make_mut(event);
            event.departed.insert(name.clone());
            event.revision += 1;
        }
    }
}
