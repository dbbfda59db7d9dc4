//! The one history which all replicas apply: a replica with a different entry or state, or a forbidden state, is found
//! at once.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allclear::consensus::{NotUnderstood, RaftStatus, StateMachine};
use allclear::core::apply::apply;
use allclear::core::model::command::{ApplyResult, Command, RequestAction};
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::state::State;
use allclear::core::{verify::invariants, verify::transition};
use allclear::replica::state_machine::CoreStateMachine;
use allclear::wire::log;

use crate::world::World;

/// The known log, from the first replica to apply each entry.
#[derive(Default)]
pub(crate) struct History(Mutex<Known>);

#[derive(Default)]
struct Known {
    entries: BTreeMap<u64, Folding>,
    /// The state after the last entry which any replica has applied.
    latest: State,
    /// The index of each client's proposal, and the highest acknowledged index.
    proposals: BTreeMap<String, u64>,
    acknowledged: u64,
    acknowledgements: u64,
    wrong: Vec<String>,
}

/// An entry with its effect on the state.
#[derive(PartialEq, Eq)]
struct Folding {
    entry: u64,
    verdict: u64,
    after: u64,
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl History {
    pub(crate) fn wrong(&self, what: String) {
        self.known().wrong.push(what);
    }

    pub(crate) fn findings(&self) -> Vec<String> {
        self.known().wrong.clone()
    }

    pub(crate) fn latest(&self) -> State {
        self.known().latest.clone()
    }

    /// The last index which any replica has applied.
    pub(crate) fn length(&self) -> u64 {
        self.known().entries.last_key_value().map_or(0, |(index, _)| *index)
    }

    pub(crate) fn acknowledgements(&self) -> u64 {
        self.known().acknowledgements
    }

    /// Operations which begin now must see the log up to this index.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.known().acknowledged
    }

    /// Records the acknowledgement of a proposal to a client.
    pub(crate) fn acknowledge(&self, proposal: &str) {
        let mut known = self.known();
        match known.proposals.get(proposal).copied() {
            Some(index) => {
                known.acknowledged = known.acknowledged.max(index);
                known.acknowledgements += 1;
            }
            None => known.wrong.push(format!("S9: {proposal} was acknowledged, and nobody has applied it")),
        }
    }

    fn folded(&self, who: &str, index: u64, (entry, verdict): (&[u8], &[u8]), (before, after): (&State, &State)) {
        let folding = Folding { entry: digest(&entry), verdict: digest(&verdict), after: digest(after) };
        let mut known = self.known();
        let earlier = known.entries.range(..index).next_back().map(|(index, known)| (*index, known.after));
        if let Some((earlier, state)) = earlier
            && state != digest(before)
        {
            known.wrong.push(format!("{who} comes to entry {index} with another state than entry {earlier} left"));
        }
        match known.entries.get(&index) {
            Some(known) if *known == folding => return,
            Some(other) => {
                let what = if other.entry == folding.entry { "makes something else of" } else { "has another" };
                known.wrong.push(format!("{who} {what} entry {index} than others had"));
                return;
            }
            None => {}
        }
        if let Some((last, _)) = known.entries.last_key_value().filter(|(last, _)| **last > index) {
            let wrong = format!("{who} has an entry {index} that others, who came to {last}, have not");
            known.wrong.push(wrong);
        }
        if let Some(broken) = invariants::violated(after).or_else(|| transition::violated(before, after)) {
            known.wrong.push(format!("after entry {index}: {broken}"));
        }
        known.entries.insert(index, folding);
        known.latest = after.clone();
    }

    fn proposed(&self, proposal: &str, index: u64) {
        let mut known = self.known();
        if let Some(other) = known.proposals.insert(proposal.to_owned(), index).filter(|other| *other != index) {
            known.wrong.push(format!("{proposal} is in the log twice, as {other} and {index}"));
        }
    }

    fn restored(&self, who: &str, state: &State) {
        let digest = digest(state);
        let mut known = self.known();
        let is_start = *state == State::default();
        if !is_start && !known.entries.values().any(|folding| folding.after == digest) {
            known.wrong.push(format!("{who} takes over a state that no entry has made"));
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state machine of a replica, watched.
pub(crate) struct Watched {
    pub(crate) state_machine: CoreStateMachine,
    pub(crate) state: State,
    pub(crate) who: String,
    pub(crate) world: Arc<World>,
    /// A deliberate mistake: one of every `forgets` entries is not applied.
    pub(crate) forgets: Option<u64>,
}

impl StateMachine for Watched {
    fn can_stamp(&self, proposal: &[u8], status: &RaftStatus) -> bool {
        self.state_machine.can_stamp(proposal, status)
    }

    fn stamp_entry(&self, proposal: &[u8], by: &str) -> Result<Vec<u8>, NotUnderstood> {
        self.state_machine.stamp_entry(proposal, by)
    }

    fn understands(&self, entry: &[u8]) -> Result<(), NotUnderstood> {
        self.state_machine.understands(entry)
    }

    fn understands_snapshot(&self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        self.state_machine.understands_snapshot(snapshot)
    }

    fn excludes(&self, replica: &str) -> bool {
        self.state_machine.excludes(replica)
    }

    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Vec<u8>, NotUnderstood> {
        let decoded = log::decode_entry(entry).map_err(|error| NotUnderstood(error.to_string()))?;
        let before = self.state.clone();
        let verdict = if self.forgets.is_some_and(|every| index.is_multiple_of(every)) {
            log::encode_verdict(&ApplyResult::Applied)
        } else {
            apply(&mut self.state, &decoded);
            self.state_machine.apply(index, entry)?
        };
        self.world.trace.line(format_args!("{} folds {index}: {}", self.who, decoded.command.as_str()));
        if let Command::RequestAction(RequestAction { what: OperatorRequest::ClusterChange { what }, .. }) =
            &decoded.command
        {
            self.world.history.proposed(what, index);
        }
        self.world.history.folded(&self.who, index, (entry, &verdict), (&before, &self.state));
        Ok(verdict)
    }

    fn published(&mut self) {
        self.state_machine.published();
    }

    fn snapshot(&self) -> Vec<u8> {
        self.state_machine.snapshot()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        self.state_machine.restore(snapshot)?;
        self.state = log::decode_state(snapshot).map_err(|error| NotUnderstood(error.to_string()))?;
        self.world.history.restored(&self.who, &self.state);
        Ok(())
    }
}
