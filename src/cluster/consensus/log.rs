//! The log store of openraft: log, vote, committed and purged positions on the disk, and the unsynced end in memory.
//! Nothing is acknowledged before fsync. A change of anything but the end waits for all earlier writes.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use prost::Message as _;
use redb::ReadableTable as _;

use super::disk::Disk;
use super::failure::OpenError;
use super::tables::{COMMITTED, LOG, MAX_BATCH_BYTES, META, PURGED, VOTE, WHAT_TO_DO, put_committed};
use super::types::{LogId, RaftEntry, RaftVote, Types};
use super::unstable_log::Batch;
use super::{checked, codec};
use allclear_wire::pb::allclear::raft::v1 as pb;

/// The log of one replica; its clones read the same log.
#[derive(Clone, Debug)]
pub(crate) struct LogStore(pub(crate) Arc<Disk>);

impl Disk {
    /// The stored entries of a range, up to `most` bytes, but at least the first entry. A stored entry that cannot be
    /// decoded stops the replica: without the entry, its state would fork from the other replicas' state.
    pub(super) fn entries(&self, range: (Bound<u64>, Bound<u64>), most: usize) -> Result<Vec<RaftEntry>, OpenError> {
        self.stored(range, most)?.iter().map(|(index, message)| decode(*index, message)).collect()
    }

    /// The stored messages of a range, not decoded, with the limit of `entries`.
    pub(super) fn stored(
        &self,
        range: (Bound<u64>, Bound<u64>),
        most: usize,
    ) -> Result<Vec<(u64, Vec<u8>)>, OpenError> {
        self.read(|transaction| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            for pair in transaction.open_table(LOG)?.range(range)? {
                let (index, sealed) = pair?;
                let message = checked::entry(index.value(), sealed.value())?;
                bytes += message.len();
                if bytes > most && !found.is_empty() {
                    break;
                }
                found.push((index.value(), message.to_vec()));
            }
            Ok(found)
        })
    }

    pub(super) fn position(&self, key: &str) -> Result<Option<LogId>, OpenError> {
        Ok(self.message(key)?.map(codec::log_id))
    }
}

/// Entries from before the checksums contain their own position.
pub(super) fn decode(index: u64, message: &[u8]) -> Result<RaftEntry, OpenError> {
    let undecodable =
        |what: String| OpenError::Start(format!("log entry {index} cannot be decoded: {what}; {WHAT_TO_DO}"));
    let entry = pb::Entry::decode(message).map_err(|why| undecodable(why.to_string()))?;
    let entry = codec::entry(entry).map_err(|why| undecodable(why.to_string()))?;
    let found = entry.log_id.index();
    if found == index { Ok(entry) } else { Err(undecodable(format!("entry {found} is stored in its place"))) }
}

impl LogStore {
    /// Returns when all accepted entries are on the disk.
    pub(super) async fn all_written(&self) -> io::Result<()> {
        self.0.recent.all_written().await
    }

    /// The entries of a range on the disk, up to `most` bytes but at least the first, and the entries not on the disk.
    async fn both(&self, range: (Bound<u64>, Bound<u64>), most: usize) -> io::Result<[Vec<RaftEntry>; 2]> {
        // Memory is read first: in the other order, an entry written meanwhile would be in neither part.
        let unwritten = self.0.recent.within(range);
        let first = unwritten.first().map(|entry| entry.log_id.index());
        if first.is_some_and(|first| range.0 == Bound::Included(first)) {
            return Ok([Vec::new(), unwritten]);
        }
        let stored = (range.0, first.map_or(range.1, Bound::Excluded));
        Ok([self.0.run(move |disk| disk.entries(stored, most)).await?, unwritten])
    }

    pub(super) async fn entries(&self, range: (Bound<u64>, Bound<u64>)) -> io::Result<Vec<RaftEntry>> {
        self.both(range, usize::MAX).await.map(|both| both.concat())
    }

    /// Writes batch after batch, each with all entries since the batch before.
    async fn write(self) {
        while let Some(Batch { entries, committed, flushed }) = self.0.recent.next() {
            let count = entries.len();
            let write = move |disk: &Disk| {
                let mut written = Vec::with_capacity(entries.len());
                disk.write(|transaction| {
                    let mut table = transaction.open_table(LOG)?;
                    for entry in &entries {
                        written.push(checked::put_entry(&mut table, entry)?);
                    }
                    committed.map_or(Ok(()), |committed| put_committed(transaction, &committed))
                })?;
                disk.weights.add(written);
                Ok(())
            };
            let result = self.0.run(write).await;
            self.0.recent.written(count, flushed, result);
        }
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<RaftEntry>, io::Error> {
        self.entries((range.start_bound().cloned(), range.end_bound().cloned())).await
    }

    async fn read_vote(&mut self) -> Result<Option<RaftVote>, io::Error> {
        let stored = self.0.run(|disk| disk.message(VOTE)).await?;
        stored.map(|vote| codec::vote(Some(vote)).map_err(io::Error::other)).transpose()
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<RaftEntry>, io::Error> {
        let range = (Bound::Included(start), Bound::Excluded(end));
        let [stored, unwritten] = self.both(range, MAX_BATCH_BYTES).await?;
        if !stored.is_empty() {
            return Ok(stored);
        }
        let mut bytes = 0;
        let mut fits = |entry: &RaftEntry| {
            bytes += codec::pb_entry(entry).encoded_len();
            bytes <= MAX_BATCH_BYTES
        };
        let fitting = unwritten.iter().take_while(|entry| fits(entry)).count().max(1);
        Ok(unwritten.into_iter().take(fitting).collect())
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        self.all_written().await?;
        let state = |disk: &Disk| {
            let last_purged_log_id = disk.position(PURGED)?;
            let last =
                disk.read(|transaction| Ok(transaction.open_table(LOG)?.last()?.map(|(index, _)| index.value())))?;
            let from_last =
                last.map_or(Ok(Vec::new()), |last| disk.entries((Bound::Included(last), Bound::Unbounded), 0))?;
            let last_log_id = from_last.last().map(|entry| entry.log_id).or(last_purged_log_id);
            Ok::<_, OpenError>(LogState { last_purged_log_id, last_log_id })
        };
        self.0.run(state).await
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &RaftVote) -> Result<(), io::Error> {
        self.all_written().await?;
        let vote = codec::pb_vote(vote);
        let write = move |disk: &Disk| {
            disk.write(|transaction| checked::put(&mut transaction.open_table(META)?, VOTE, &vote))?;
            disk.term.stored(vote.term);
            Ok(())
        };
        self.0.run(write).await
    }

    /// Only a hint for the next start: written with the next entries, or when the disk is released.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        if let Some(committed) = committed {
            self.0.recent.set_committed_hint(committed);
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        self.all_written().await?;
        match self.0.recent.committed_hint() {
            Some(committed) => Ok(Some(committed)),
            None => self.0.run(|disk| disk.position(COMMITTED)).await,
        }
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.0.recent.has_room().await?;
        if self.0.recent.append(entries, callback)? {
            tokio::spawn(self.clone().write());
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.all_written().await?;
        let first = last.map_or(0, |id| id.index().saturating_add(1));
        let write = move |disk: &Disk| {
            disk.write(|transaction| Ok(transaction.open_table(LOG)?.retain_in(first.., |_, _| false)?))?;
            disk.weights.remove(first..);
            Ok(())
        };
        self.0.run(write).await
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        self.all_written().await?;
        let write = move |disk: &Disk| {
            disk.write(|transaction| {
                checked::put(&mut transaction.open_table(META)?, PURGED, &codec::pb_log_id(&upto))?;
                Ok(transaction.open_table(LOG)?.retain_in(..=upto.index(), |_, _| false)?)
            })?;
            disk.weights.remove(..=upto.index());
            Ok(())
        };
        self.0.run(write).await
    }
}
