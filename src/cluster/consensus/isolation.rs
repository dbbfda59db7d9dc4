//! Acts without a leader. First a fence: no earlier leader can count on this replica any more. Then the unapplied end
//! of the log is read, because only a leader knows how much of it is committed.

use std::ops::Bound;
use std::time::Duration;

use bytes::Bytes;
use openraft::EntryPayload;
use tokio::time::Instant;

use super::failure::RequestError;
use super::log::LogStore;
use super::node::Consensus;
use super::types::Proposed;

/// One synced write of the vote.
const FENCED_WITHIN: Duration = Duration::from_secs(2);

impl Consensus {
    /// Fences off earlier leaders before this replica acts without a leader: after a return of true, no earlier leader
    /// can count on this replica any more. Campaigns in a new term, which is on the disk before the return of true. A
    /// leader of an earlier term gets nothing acknowledged here from then on: such a leader has to be elected anew, and
    /// begins anew. A leader needs no fence, a new epoch begins with its quorum.
    pub async fn fence(&self) -> Result<bool, RequestError> {
        if self.raft.is_leader() {
            return Ok(true);
        }
        let before = self.with_metrics(|metrics| metrics.current_term);
        self.raft.trigger().elect(false).await.map_err(|why| RequestError::stopped(&why))?;
        let risen = self.metrics_show(Instant::now() + FENCED_WITHIN, |metrics| metrics.current_term > before).await?;
        Ok(risen.is_some())
    }

    /// The entries behind the applied position, as given to the state machine: on this replica's disk, and perhaps
    /// committed. To miss nothing, read these entries before the state: an entry applied in between is then in both,
    /// and an entry in neither was not in this replica's log.
    pub async fn unapplied_entries(&self) -> Result<Vec<Bytes>, RequestError> {
        let gone = || RequestError::Stopped(self.stopped().unwrap_or_else(|| "the data directory is closed".into()));
        let published = *self.published.borrow();
        let log = LogStore(self.disk.upgrade().ok_or_else(gone)?);
        let after = published.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = log.entries((after, Bound::Unbounded)).await;
        let entries =
            entries.map_err(|error| RequestError::Refused(format!("the end of the log cannot be read: {error}")))?;
        let stamped = entries.into_iter().filter_map(|entry| match entry.payload {
            EntryPayload::Normal(Proposed(bytes)) => Some(bytes),
            EntryPayload::Blank | EntryPayload::Membership(_) => None,
        });
        Ok(stamped.collect())
    }
}
