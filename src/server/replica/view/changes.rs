//! The changes by which a shown status becomes out of date.

use std::sync::Arc;

use tokio::sync::watch;

use crate::consensus::RaftStatus;
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::state::State;

pub struct Changes {
    pub(super) state: watch::Receiver<Arc<State>>,
    pub(super) raft_status: watch::Receiver<RaftStatus>,
    pub(super) journal: watch::Receiver<Arc<Vec<JournalEntry>>>,
}

impl Changes {
    /// Waits for the next change. False when the replica stops.
    pub async fn next(&mut self) -> bool {
        let shown =
            |raft_status: &RaftStatus| (raft_status.role.clone(), raft_status.leader.clone(), raft_status.quorum);
        let before = shown(&self.raft_status.borrow());
        tokio::select! {
            changed = self.state.changed() => changed.is_ok(),
            changed = self.journal.changed() => changed.is_ok(),
            changed = self.raft_status.wait_for(|raft_status| shown(raft_status) != before) => changed.is_ok(),
        }
    }
}
