//! Reconciles the journal with the log by the core's procedure.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::host::ReplicaHost;
use crate::consensus::RaftStatus;
use allclear_core::model::command::Command;
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::state::State;
use allclear_core::procedure::reconciliation::{JournalHost, reconcile_journal};

/// The pause after a failed write of the journal.
const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Runs until the replica stops.
pub(super) async fn run(host: ReplicaHost) {
    host.stop.clone().run_until_cancelled_owned(async move { reconcile_journal(&host).await }).await;
}

/// The changes seen by a reconciliation at the beginning of a wait.
pub(super) struct JournalChanges {
    state: watch::Receiver<Arc<State>>,
    journal: watch::Receiver<Arc<Vec<JournalEntry>>>,
    status: watch::Receiver<RaftStatus>,
    had_quorum: bool,
}

impl JournalHost for ReplicaHost {
    type Changes = JournalChanges;

    fn changes(&self) -> JournalChanges {
        let (mut state, mut journal) = (self.cluster.committed.clone(), self.journal.changes());
        state.mark_unchanged();
        journal.mark_unchanged();
        let mut status = self.cluster.consensus.status();
        let had_quorum = status.borrow_and_update().quorum;
        JournalChanges { state, journal, status, had_quorum }
    }

    async fn wait(&self, changes: JournalChanges, at_most: Option<Duration>) {
        let JournalChanges { mut state, mut journal, mut status, had_quorum } = changes;
        tokio::select! {
            _ = state.changed() => {}
            _ = journal.changed() => {}
            _ = status.wait_for(|status| status.quorum != had_quorum) => {}
            () = tokio::time::sleep(at_most.unwrap_or_default()), if at_most.is_some() => {}
        }
    }

    fn may_reconcile(&self) -> bool {
        self.cluster.consensus.status().borrow().quorum
    }

    fn document_age(&self) -> Option<Duration> {
        self.observer.health().document_age
    }

    fn has_former_vote(&self) -> bool {
        self.cluster.consensus.is_left_behind()
    }

    fn is_journal_new(&self) -> bool {
        self.journal.is_new()
    }

    async fn keep_journal(&self) {
        while let Err(error) = self.journal.keep().await {
            tracing::error!(%error, "journal not written");
            tokio::time::sleep(WRITE_AGAIN_AFTER).await;
        }
        tracing::info!("journal of a new disk kept");
    }

    fn is_known(&self) -> Option<bool> {
        self.left_over.borrow().map(|left_over| left_over.is_known)
    }

    async fn prune_journal(&self, is_needed: impl Fn(&JournalEntry) -> bool) {
        if let Err(error) = self.journal.prune(is_needed).await {
            tracing::error!(%error, "journal not written");
        }
    }

    async fn read_journal<T>(&self, read: impl FnOnce(&[JournalEntry]) -> T) -> T {
        let _turn = self.journal.turn().await;
        read(&self.journal.entries())
    }

    async fn propose(&self, command: &Command) {
        match self.cluster.propose(command).await {
            Ok(result) => tracing::debug!(?result, "journal reconciled"),
            Err(error) => tracing::debug!(%error, "journal not reconciled yet"),
        }
    }
}
