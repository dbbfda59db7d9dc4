//! The state machine as openraft stores it: applies committed entries in order, and keeps snapshots on the disk.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};
use tokio::sync::watch;

use super::disk::Disk;
use super::failure::OpenError;
use super::options::MAX_SNAPSHOT_BYTES;
use super::state_machine::{NotUnderstood, StateMachine};
use super::tables::{MAX_BATCH_BYTES, META, SNAPSHOT, WHAT_TO_DO, last_index};
use super::types::{LogId, Proposed, SharedStateMachine, Snapshot, SnapshotMeta, StoredMembership, Types};
use super::{checked, codec};
use allclear_wire::pb::allclear::raft::v1 as pb;

/// The state in memory, rebuilt from the snapshot and the log at every start.
pub(crate) struct StateMachineStore {
    disk: Arc<Disk>,
    state_machine: SharedStateMachine,
    applied: Option<LogId>,
    membership: StoredMembership,
    /// The index up to which everything is applied and published.
    published: watch::Sender<Option<u64>>,
}

fn refused(what: &str, why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} cannot be applied: {why}; {WHAT_TO_DO}"))
}

impl StateMachineStore {
    pub(crate) fn new(
        disk: Arc<Disk>,
        state_machine: SharedStateMachine,
        published: watch::Sender<Option<u64>>,
    ) -> Self {
        Self { disk, state_machine, applied: None, membership: StoredMembership::default(), published }
    }

    /// Checks that this program understands all entries on the disk: a replica that could not apply an entry does not
    /// vote either.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let refused_at_start = |what: &str, why| OpenError::Start(refused(what, why).to_string());
        let mut next = Bound::Unbounded;
        loop {
            // In pieces: the whole log at once may be more than a replica holds otherwise.
            let piece = self.disk.entries((next, Bound::Unbounded), MAX_BATCH_BYTES)?;
            let Some(last) = piece.last() else { return Ok(()) };
            next = Bound::Excluded(last.log_id.index());
            for entry in piece {
                if let EntryPayload::Normal(Proposed(bytes)) = entry.payload {
                    let index = entry.log_id.index();
                    let understood = self.change(|state_machine| state_machine.understands(&bytes));
                    understood.map_err(|why| refused_at_start(&format!("log entry {index}"), why))?;
                }
            }
        }
    }

    /// A panic in the state machine ends the state machine, so a poisoned lock is never taken for writing again.
    fn change<R>(
        &self,
        work: impl FnOnce(&mut dyn StateMachine) -> Result<R, NotUnderstood>,
    ) -> Result<R, NotUnderstood> {
        let mut state_machine =
            self.state_machine.write().map_err(|_| NotUnderstood("an entry is applied only in part".into()))?;
        work(state_machine.as_mut())
    }

    fn publish(&self) -> io::Result<()> {
        let publish = |state_machine: &mut dyn StateMachine| {
            state_machine.published();
            Ok(())
        };
        self.change(publish).map_err(io::Error::other)?;
        self.published.send_replace(self.applied.map(|id| id.index()));
        Ok(())
    }
}

impl RaftStateMachine<Types> for StateMachineStore {
    type SnapshotData = Bytes;
    type SnapshotBuilder = TakenSnapshot;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        let mut verdicts = Vec::new();
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let index = entry.log_id.index();
            let verdict = match entry.payload {
                EntryPayload::Blank => Bytes::new(),
                EntryPayload::Normal(Proposed(bytes)) => self
                    .change(|state_machine| state_machine.apply(index, &bytes))
                    .map_err(|why| refused(&format!("log entry {index}"), why))?
                    .into(),
                EntryPayload::Membership(next) => {
                    self.membership = StoredMembership::new(Some(entry.log_id), next);
                    Bytes::new()
                }
            };
            self.applied = Some(entry.log_id);
            verdicts.extend(responder.map(|responder| (responder, verdict)));
        }
        self.publish()?;
        for (responder, verdict) in verdicts {
            responder.send(verdict);
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        let state = self.state_machine.read().unwrap_or_else(PoisonError::into_inner).snapshot();
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        TakenSnapshot { disk: Arc::clone(&self.disk), meta, state: state.into() }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, state: Bytes) -> Result<(), io::Error> {
        self.change(|state_machine| state_machine.restore(&state)).map_err(|why| refused("the snapshot", why))?;
        store(&self.disk, meta, state).await?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.publish()
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let stored = self.disk.run(|disk| disk.message::<pb::Snapshot>(SNAPSHOT)).await?;
        let Some(stored) = stored else { return Ok(None) };
        let meta =
            codec::snapshot_meta(stored.head.unwrap_or_default()).map_err(|why| refused("the stored snapshot", why))?;
        Ok(Some(Snapshot { meta, snapshot: stored.state }))
    }
}

/// A snapshot at the time of its creation; later entries are not included.
pub(crate) struct TakenSnapshot {
    disk: Arc<Disk>,
    meta: SnapshotMeta,
    state: Bytes,
}

impl RaftSnapshotBuilder<Types> for TakenSnapshot {
    type SnapshotData = Bytes;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        if self.state.len() > MAX_SNAPSHOT_BYTES {
            tracing::error!(bytes = self.state.len(), "snapshot not sent: the state exceeds its limit");
        }
        store(&self.disk, &self.meta, self.state.clone()).await?;
        Ok(Snapshot { meta: self.meta.clone(), snapshot: self.state.clone() })
    }
}

/// Never replaces a newer snapshot: building runs beside installing, and the log up to the newer snapshot may be purged
/// already.
async fn store(disk: &Arc<Disk>, meta: &SnapshotMeta, state: Bytes) -> io::Result<()> {
    let snapshot = pb::Snapshot { head: Some(codec::pb_snapshot_head(meta)), state };
    let write = move |disk: &Disk| {
        disk.write(|transaction| {
            let mut table = transaction.open_table(META)?;
            // An unreadable snapshot is replaced.
            let stored = checked::get(&table, SNAPSHOT).ok().flatten();
            if last_index(stored.as_ref()) <= last_index(Some(&snapshot)) {
                checked::put(&mut table, SNAPSHOT, &snapshot)?;
            }
            Ok(())
        })
    };
    disk.run(write).await
}
