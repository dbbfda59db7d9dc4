//! The state machine of the log: applies committed entries by `core::apply`, and publishes the state.

use allclear_core::version;
use std::sync::Arc;

use tokio::sync::watch;

use super::clock::ClusterClock;
use crate::consensus::{NotUnderstood, RaftStatus, StateMachine};
use allclear_core::apply::apply;
use allclear_core::cluster_time::Trust;
use allclear_core::leadership::may_enter;
use allclear_core::model::command::{ApplyResult, Command, Entry};
use allclear_core::model::id::VmName;
use allclear_core::model::state::State;
use allclear_core::version::Beyond;
use allclear_wire::log;

pub struct CoreStateMachine {
    /// The highest cluster version known to this program.
    known: u64,
    state: State,
    is_news: bool,
    shown: watch::Sender<Arc<State>>,
    time: Arc<ClusterClock>,
}

impl CoreStateMachine {
    /// The state before the first entry, and the receiver of every later state. `known` is the cluster version known to
    /// this program.
    pub fn new(time: Arc<ClusterClock>, known: u64) -> (Self, watch::Receiver<Arc<State>>) {
        let (shown, seen) = watch::channel(Arc::new(State::default()));
        (Self { known, state: State::default(), is_news: false, shown, time }, seen)
    }

    fn decode(&self, entry: &[u8]) -> Result<Entry, NotUnderstood> {
        let entry = log::decode_entry(entry).map_err(|error| undecodable(&error))?;
        version::check_command(&entry.command, self.known).map_err(beyond)?;
        Ok(entry)
    }

    fn decode_state(&self, snapshot: &[u8]) -> Result<State, NotUnderstood> {
        let state = log::decode_state(snapshot).map_err(|error| undecodable(&error))?;
        version::check_state(&state, self.known).map_err(beyond)?;
        Ok(state)
    }
}

impl StateMachine for CoreStateMachine {
    /// A first leader with a wrong clock would impose the wrong time on the cluster. A proposal that cannot be decoded is
    /// refused by `stamp_entry`.
    fn can_stamp(&self, proposal: &[u8], status: &RaftStatus) -> bool {
        let leads = status.leads().then_some((status.term, status.turn));
        let is_beginning = || matches!(log::decode_command(proposal), Ok(Command::BeginLeadership(_)) | Err(_));
        self.time.trust() != Trust::Unknown && may_enter(&self.state, leads, self.time.now(), is_beginning)
    }

    fn stamp_entry(&self, proposal: &[u8], by: &str) -> Result<Vec<u8>, NotUnderstood> {
        let command = log::decode_command(proposal).map_err(|error| undecodable(&error))?;
        // Only the leader stamps.
        self.time.lead();
        Ok(log::encode_entry(&Entry { at: self.time.now(), by: VmName::new(by), command }))
    }

    fn understands(&self, entry: &[u8]) -> Result<(), NotUnderstood> {
        self.decode(entry).map(drop)
    }

    fn understands_snapshot(&self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        self.decode_state(snapshot).map(drop)
    }

    fn excludes(&self, replica: &str) -> bool {
        self.state.is_excluded(&VmName::new(replica))
    }

    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Vec<u8>, NotUnderstood> {
        let entry = self.decode(entry)?;
        let verdict = apply(&mut self.state, &entry);
        self.time.applied(self.state.now, !self.state.open.is_empty());
        match &verdict {
            ApplyResult::Applied => {
                self.is_news = true;
                tracing::debug!(index, by = %entry.by, command = entry.command.as_str(), "entry applied");
            }
            ApplyResult::Rejected(why) => {
                tracing::debug!(index, by = %entry.by, command = entry.command.as_str(), %why, "entry rejected");
            }
        }
        Ok(log::encode_verdict(&verdict))
    }

    /// An entry without effect notifies no task: the proposer would only propose the entry again.
    fn published(&mut self) {
        if core::mem::take(&mut self.is_news) {
            self.shown.send_replace(Arc::new(self.state.clone()));
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        log::encode_state(&self.state)
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        self.state = self.decode_state(snapshot)?;
        self.time.applied(self.state.now, !self.state.open.is_empty());
        self.is_news = true;
        self.published();
        Ok(())
    }
}

fn beyond(beyond: Beyond) -> NotUnderstood {
    let Beyond { version, known } = beyond;
    NotUnderstood(format!(
        "the cluster was raised to version {version}, and this program knows versions up to {known}; upgrade this replica"
    ))
}

fn undecodable(error: &log::Undecodable) -> NotUnderstood {
    NotUnderstood(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::RaftRole;
    use allclear_core::model::command::{BeginLeadership, RaiseVersion};
    use allclear_core::model::time::Timestamp;
    use allclear_core::model::version::VERSION;

    fn folded(known: u64) -> CoreStateMachine {
        CoreStateMachine::new(Arc::new(ClusterClock::default()), known).0
    }

    #[test]
    fn a_program_that_does_not_know_the_clusters_version_folds_neither_its_entry_nor_its_snapshot() {
        let command = Command::RaiseVersion(RaiseVersion { version: VERSION + 1 });
        let entry = log::encode_entry(&Entry { at: Timestamp(1), by: VmName::new("db-0"), command });
        let (mut newer, mut older) = (folded(VERSION + 1), folded(VERSION));
        assert!(newer.understands(&entry).is_ok());
        newer.apply(1, &entry).unwrap();
        let says =
            |why: NotUnderstood| why.0.contains("raised to version 2") && why.0.ends_with("upgrade this replica");
        assert!(older.understands(&entry).is_err_and(says));
        assert!(older.apply(1, &entry).is_err_and(says));
        assert!(older.understands_snapshot(&newer.snapshot()).is_err_and(says));
        assert!(older.restore(&newer.snapshot()).is_err_and(says));
        assert_eq!(older.state, State::default());
        assert!(folded(VERSION + 1).restore(&newer.snapshot()).is_ok());
    }

    #[test]
    fn after_a_silence_the_first_entry_of_a_leadership_begins_it() {
        let mut folded = folded(VERSION);
        let status = |role, quorum, turn| RaftStatus {
            role,
            quorum,
            turn,
            leader: None,
            term: 3,
            applied: 0,
            leader_since: std::time::Instant::now(),
        };
        let begins = |turn| Command::BeginLeadership(BeginLeadership { term: 3, turn, voters: Vec::new() });
        let takes = |folded: &CoreStateMachine, command: &Command, status: &RaftStatus| {
            folded.can_stamp(&log::encode_command(command), status)
        };
        let other = Command::RaiseVersion(RaiseVersion { version: VERSION });
        let leads = status(RaftRole::Leader, true, 1);
        assert!(!takes(&folded, &begins(1), &leads), "the cluster's time is unknown");
        assert!(folded.time.adopt(Timestamp(1)));
        assert!(takes(&folded, &other, &leads), "the last entry is young");
        folded.time.applied(Timestamp(10_000), false);
        assert!(takes(&folded, &begins(1), &leads));
        assert!(!takes(&folded, &other, &leads), "the leadership has not begun");
        let entry = |command| log::encode_entry(&Entry { at: Timestamp(1), by: VmName::new("db-0"), command });
        folded.apply(1, &entry(begins(1))).unwrap();
        assert!(takes(&folded, &other, &leads));
        assert!(!takes(&folded, &other, &status(RaftRole::Leader, true, 2)), "the quorum was lost meanwhile");
        assert!(!takes(&folded, &other, &status(RaftRole::Leader, false, 1)), "the quorum is lost");
        assert!(!takes(&folded, &other, &status(RaftRole::Follower, true, 0)), "the election is not noticed yet");
    }
}
