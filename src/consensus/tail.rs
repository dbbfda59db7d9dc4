//! The end of this replica's log that it has not applied: nobody but a leader can say which of it is committed.

use std::io;
use std::ops::Bound;

use bytes::Bytes;
use openraft::EntryPayload;

use super::failure::Fatal;
use super::log::LogStore;
use super::node::Consensus;
use super::types::Proposed;

impl Consensus {
    /// The entries, as the fold is given them, behind what is applied here: on this replica's disk, and perhaps
    /// committed. To miss nothing take the tail before the state: what is applied in between is then in both, and what
    /// is in neither was not in this replica's log.
    pub async fn tail(&self) -> Result<Vec<Bytes>, Fatal> {
        let unreadable = |error: io::Error| Fatal(format!("the end of the log cannot be read: {error}"));
        let gone = || Fatal(self.stopped().unwrap_or_else(|| "the data directory was let go".into()));
        let published = *self.published.borrow();
        let log = LogStore(self.disk.upgrade().ok_or_else(gone)?);
        let after = published.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = log.entries((after, Bound::Unbounded), usize::MAX).await.map_err(unreadable)?;
        let stamped = entries.into_iter().filter_map(|entry| match entry.payload {
            EntryPayload::Normal(Proposed(bytes)) => Some(bytes),
            EntryPayload::Blank | EntryPayload::Membership(_) => None,
        });
        Ok(stamped.collect())
    }
}
