//! Removes replicas whose VM is deleted by an event (`behaviour.md` 9), with their workloads. A later replica of the
//! same name is a new one.

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
    let is_deleted = |event: &Event, _: &VmName, replica: &Replica| has_begun(event) || was_silenced(event, replica);
    if !deleted(state, is_deleted).contains(replica) {
        return Err(Rejection::NotDue);
    }
    let gone = state.replicas.remove(replica);
    for announcement in gone.iter().filter_map(|gone| gone.document.as_ref()).flat_map(|document| &document.events) {
        report::refresh_announcement(state, &announcement.id);
    }
    // A machine that does not exist approves nothing.
    state.reconcile_states.remove(replica);
    mark_departed(state, replica);
    let now = state.now;
    // What it ran for others may still run: nothing of theirs begins beside it until it must have ended.
    let is_lost =
        |attempt: &Attempt| attempt.member.vm == *replica && attempt.on == *replica && attempt.outcome.is_none();
    for event in state.open.values_mut().filter(|event| event.attempts.iter().any(is_lost)) {
        let event = Arc::make_mut(event);
        for attempt in event.attempts.iter_mut().filter(|attempt| is_lost(attempt)) {
            attempt.outcome = Some((Outcome::Unknown(alloc::format!("{replica} was deleted")), now));
            event.revision += 1;
        }
    }
    slots::drop_members_of(state, replica);
    report::move_events_by_documents(state);
    Ok(())
}

/// A replica registers under a name that nobody bears: what deleted the name's former VM has nothing to do with it.
pub(crate) fn mark_departed(state: &mut State, name: &VmName) {
    for event in state.open.values_mut().chain(&mut state.history) {
        if event.deletes_vms() && event.affects(name) {
            let event = Arc::make_mut(event);
            event.departed.insert(name.clone());
            event.revision += 1;
        }
    }
}
