//! Replicas whose VM is deleted by an event (`behaviour.md` 9): they leave the cluster, and their workloads are
//! forgotten. Whoever bears the name afterwards is somebody new.

use alloc::vec::Vec;

use super::apply::Applied;
use super::attempt::Outcome;
use super::command::{Command, Ignored};
use super::event::Event;
use super::id::{EventId, VmName};
use super::sight;
use super::situation::Situation;
use super::state::State;

/// The registered replicas whose VMs are being deleted, or are deleted.
pub fn departing(state: &State) -> Vec<VmName> {
    let events: Vec<&Event> = all(state).filter(|event| event.deletes_vms()).collect();
    let is_deleted = |name: &&VmName| events.iter().any(|event| event.affects(name));
    if events.is_empty() { Vec::new() } else { state.replicas.keys().filter(is_deleted).cloned().collect() }
}

/// As long as a replica is a member it could register again at once, so its membership ends first.
pub(super) fn to_dismiss(state: &State, situation: &Situation) -> impl Iterator<Item = Command> {
    let gone = departing(state).into_iter().filter(|name| !situation.members.contains(name));
    gone.map(|replica| Command::Dismiss { replica })
}

pub(super) fn dismiss(state: &mut State, replica: &VmName) -> Applied {
    if !state.replicas.contains_key(replica) {
        return Err(Ignored::UnknownReplica);
    }
    if !departing(state).contains(replica) {
        return Err(Ignored::NotDue);
    }
    state.replicas.remove(replica);
    // A machine that does not exist approves nothing.
    state.suspicions.remove(replica);
    part(state, replica);
    let now = state.now;
    for event in state.open.values_mut() {
        for attempt in event.attempts.iter_mut().filter(|attempt| attempt.on == *replica && attempt.outcome.is_none()) {
            attempt.outcome = Some((Outcome::Unknown(alloc::format!("{replica} was deleted")), now));
            event.revision += 1;
        }
    }
    sight::look_again(state);
    let open: Vec<EventId> = state.open.keys().cloned().collect();
    for id in open {
        sight::close_if_restored(state, &id);
    }
    Ok(())
}

/// A replica registers under a name that nobody bears: what deleted the name's former VM has nothing to do with it.
pub(super) fn part(state: &mut State, name: &VmName) {
    for event in state.open.values_mut().chain(&mut state.history) {
        if event.deletes_vms() && event.affects(name) {
            event.departed.insert(name.clone());
            event.revision += 1;
        }
    }
}

fn all(state: &State) -> impl Iterator<Item = &Event> {
    state.open.values().chain(&state.history)
}
