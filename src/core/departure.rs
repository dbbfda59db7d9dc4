//! Replicas whose VM is deleted by an event (`behaviour.md` 9): they leave the cluster, and their workloads are
//! forgotten. Whoever bears the name afterwards is somebody new.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::apply::Applied;
use super::attempt::{Attempt, Outcome};
use super::command::{Command, Ignored};
use super::event::Event;
use super::id::VmName;
use super::lifecycle::Stage;
use super::sight;
use super::situation::Situation;
use super::slot_changes;
use super::state::{Replica, State};

/// Whoever falls silent later than this after a deletion is over was not deleted by it.
const SILENT_WITHIN: Duration = Duration::from_mins(5);

/// The registered replicas whose VMs are being deleted, or are deleted. Where nobody saw that begin, one that answers
/// is not.
pub fn departing(state: &State, situation: &Situation) -> Vec<VmName> {
    deleted(state, |event, name, replica| {
        has_begun(event) || (!situation.reaches(name) && was_silenced(event, replica))
    })
}

fn deleted(state: &State, by: impl Fn(&Event, &VmName, &Replica) -> bool) -> Vec<VmName> {
    let events: Vec<&Event> = state.events().filter(|event| event.deletes_vms()).collect();
    let is_deleted =
        |name: &VmName, replica: &Replica| events.iter().any(|event| event.affects(name) && by(event, name, replica));
    let replicas = state.replicas.iter().filter(|(name, replica)| is_deleted(name, replica));
    replicas.map(|(name, _)| name.clone()).collect()
}

fn has_begun(event: &Event) -> bool {
    event.entered_at(Stage::Started).is_some()
}

/// Its document no longer counts, and has not since the event was over.
fn was_silenced(event: &Event, replica: &Replica) -> bool {
    let over = event.over_at();
    replica.discounted.is_some_and(|since| over.is_some_and(|over| since <= over.plus(SILENT_WITHIN)))
}

/// As long as a replica is a member it could register again at once, so its membership ends first.
pub(super) fn to_dismiss(state: &State, situation: &Situation) -> impl Iterator<Item = Command> {
    let gone = departing(state, situation).into_iter().filter(|name| !situation.members.contains(name));
    gone.map(|replica| Command::Dismiss { replica })
}

pub(super) fn dismiss(state: &mut State, replica: &VmName) -> Applied {
    if !state.replicas.contains_key(replica) {
        return Err(Ignored::UnknownReplica);
    }
    let is_deleted = |event: &Event, _: &VmName, replica: &Replica| has_begun(event) || was_silenced(event, replica);
    if !deleted(state, is_deleted).contains(replica) {
        return Err(Ignored::NotDue);
    }
    let gone = state.replicas.remove(replica);
    for announcement in gone.iter().filter_map(|gone| gone.document.as_ref()).flat_map(|document| &document.events) {
        sight::show_anew(state, &announcement.id);
    }
    // A machine that does not exist approves nothing.
    state.suspicions.remove(replica);
    part(state, replica);
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
    slot_changes::lose(state, replica);
    sight::look_again(state);
    Ok(())
}

/// A replica registers under a name that nobody bears: what deleted the name's former VM has nothing to do with it.
pub(super) fn part(state: &mut State, name: &VmName) {
    for event in state.open.values_mut().chain(&mut state.history) {
        if event.deletes_vms() && event.affects(name) {
            let event = Arc::make_mut(event);
            event.departed.insert(name.clone());
            event.revision += 1;
        }
    }
}
