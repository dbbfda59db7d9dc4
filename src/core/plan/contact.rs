//! Commands about replicas that the leader no longer hears, or hears again.

use crate::model::command::{Command, MarkDocumentStale, RecordReachability, SuspectReplica};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::PlanningInput;
use alloc::vec::Vec;

/// Suspicion starts once for each loss of contact, early enough to be committed before the voter acts alone.
pub(super) fn replicas_to_suspect(state: &State, input: &PlanningInput) -> Vec<Command> {
    let Some(lead) = &input.leader else {
        return Vec::new();
    };
    let half = input.timing.takeover_after / 2;
    let number_to_start = |voter: &VmName| {
        let heard = lead.acknowledged.get(voter).copied().unwrap_or(input.leading_since);
        let known = state.reconcile_states.get(voter);
        let has_its_number = known.is_some_and(|known| known.since > heard);
        let is_silent = input.now.since(heard) >= half;
        (is_silent && !has_its_number).then(|| known.map_or(0, |known| known.number) + 1)
    };
    let others = lead.voters.iter().filter(|voter| **voter != input.me);
    let suspect = |voter: &VmName| {
        Some(Command::SuspectReplica(SuspectReplica { number: number_to_start(voter)?, replica: voter.clone() }))
    };
    // The silence of a removed replica is not counted, and the replica may not know of the removal.
    let removed = state
        .reconcile_states
        .iter()
        .filter(|(name, known)| known.is_reconciled && !lead.voters.contains(name) && !input.learners.contains(name));
    let removed = removed.map(|(name, known)| {
        Command::SuspectReplica(SuspectReplica { number: known.number + 1, replica: name.clone() })
    });
    others.filter_map(suspect).chain(removed).collect()
}

/// Documents of silent replicas expire after a while, if an event depends on the document.
pub(super) fn stale_documents(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    // A removed replica reports nothing any more.
    let too_long = |name: &VmName| {
        let silent = input.without_news_for(name).is_some_and(|silence| silence >= input.timing.stale_after);
        silent || !input.members.contains(name)
    };
    let matters = |name: &VmName| state.open_events().any(|event| event.seen_by.contains(name));
    let silent = state.replicas.iter().filter(move |(name, replica)| {
        replica.document.is_some() && replica.stale_since.is_none() && too_long(name) && matters(name)
    });
    silent.map(|(name, _)| Command::MarkDocumentStale(MarkDocumentStale { replica: name.clone() }))
}

/// Replicas that were unreachable long enough to count as out of service, and replicas that are reachable again.
pub(super) fn reachability_changes(state: &State, input: &PlanningInput) -> impl Iterator<Item = Command> {
    let half = input.timing.takeover_after / 2;
    state.replicas.iter().filter_map(move |(name, replica)| {
        // A removed replica is not missed.
        let is_member = input.members.contains(name);
        let is_silent = || input.unreachable_for(name).is_some_and(|silence| silence >= half);
        let reachable = match replica.unreachable {
            None if is_member && is_silent() => false,
            Some(_) if !is_member || input.reaches(name) => true,
            None | Some(_) => return None,
        };
        Some(Command::RecordReachability(RecordReachability { replica: name.clone(), reachable }))
    })
}
