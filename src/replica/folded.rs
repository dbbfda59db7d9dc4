//! The folded log: hands what consensus agreed on to `machine::apply`, and shows the result to the rest of the replica.

use std::sync::Arc;

use tokio::sync::watch;

use super::clock::ClusterTime;
use crate::consensus::{Fold, Undecodable};
use crate::machine::apply::apply;
use crate::machine::cluster_time::Trust;
use crate::machine::command::{Entry, Verdict};
use crate::machine::id::VmName;
use crate::machine::state::State;
use crate::wire::log;

pub struct Folded {
    state: State,
    is_news: bool,
    shown: watch::Sender<Arc<State>>,
    time: Arc<ClusterTime>,
}

impl Folded {
    /// The state before the first entry, and where every later one is shown.
    pub fn new(time: Arc<ClusterTime>) -> (Self, watch::Receiver<Arc<State>>) {
        let (shown, seen) = watch::channel(Arc::new(State::default()));
        (Self { state: State::default(), is_news: false, shown, time }, seen)
    }
}

impl Fold for Folded {
    /// A first leader with a wrong clock would make its time the cluster's.
    fn can_stamp(&self) -> bool {
        self.time.trust() != Trust::Unknown
    }

    fn stamp(&self, proposal: &[u8], by: &str) -> Result<Vec<u8>, Undecodable> {
        let command = log::decode_command(proposal).map_err(|error| undecodable(&error))?;
        // Only the leader stamps.
        self.time.lead();
        Ok(log::encode_entry(&Entry { at: self.time.now(), by: VmName::new(by), command }))
    }

    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Vec<u8>, Undecodable> {
        let entry = log::decode_entry(entry).map_err(|error| undecodable(&error))?;
        let verdict = apply(&mut self.state, &entry);
        self.time.applied(self.state.now, !self.state.open.is_empty());
        match &verdict {
            Verdict::Applied => {
                self.is_news = true;
                tracing::debug!(index, by = %entry.by, command = entry.command.as_word(), "applied");
            }
            Verdict::Ignored(why) => {
                tracing::debug!(index, by = %entry.by, command = entry.command.as_word(), %why, "ignored");
            }
        }
        Ok(log::encode_verdict(&verdict))
    }

    /// An entry that changed nothing wakes nobody: who proposed it would only propose it again.
    fn published(&mut self) {
        if core::mem::take(&mut self.is_news) {
            self.shown.send_replace(Arc::new(self.state.clone()));
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        log::encode_state(&self.state)
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), Undecodable> {
        self.state = log::decode_state(snapshot).map_err(|error| undecodable(&error))?;
        self.time.applied(self.state.now, !self.state.open.is_empty());
        self.is_news = true;
        self.published();
        Ok(())
    }
}

fn undecodable(error: &log::Undecodable) -> Undecodable {
    Undecodable(error.to_string())
}
