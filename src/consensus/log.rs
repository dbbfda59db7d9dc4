//! openraft's log store on the disk: log, vote, committed and purged positions. Nothing is acknowledged before fsync.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use prost::Message as _;
use redb::{ReadableDatabase as _, ReadableTable as _};

use super::disk::{Disk, LOG, META};
use super::types::{Entry, LogId, Types, Vote};
use super::{codec, sealed};
use crate::wire::pb::allclear::raft::v1 as pb;

/// Entries that are sent together hold at most this many bytes, unless one alone holds more.
const MAX_BATCH_BYTES: usize = 1 << 20;

pub(super) const VOTE: &str = "vote";
pub(super) const COMMITTED: &str = "committed";
pub(super) const PURGED: &str = "purged";

/// The log of one replica; its clones read the same log.
#[derive(Clone, Debug)]
pub(crate) struct LogStore(pub(crate) Arc<Disk>);

/// What is stored but not understood stops the replica: skipping it would fork its state from the others'.
fn undecodable(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the stored log cannot be decoded: {what}"))
}

/// Entries from before there were seals tell by themselves where they belong.
fn decode_entry(index: u64, bytes: &[u8]) -> io::Result<Entry> {
    let entry = codec::entry(pb::Entry::decode(bytes).map_err(undecodable)?).map_err(undecodable)?;
    let found = entry.log_id.index();
    if found == index { Ok(entry) } else { Err(undecodable(format!("entry {found} stands in the place of {index}"))) }
}

impl LogStore {
    async fn position(&self, key: &'static str) -> io::Result<Option<LogId>> {
        let Some(bytes) = self.0.run(move |disk| disk.meta(key)).await? else { return Ok(None) };
        Ok(Some(codec::log_id(pb::LogId::decode(bytes.as_slice()).map_err(undecodable)?)))
    }

    pub(super) async fn entries(&self, range: (Bound<u64>, Bound<u64>), most: usize) -> io::Result<Vec<Entry>> {
        let stored = self.0.run(move |disk| {
            let table = disk.database.begin_read()?.open_table(LOG)?;
            let mut found = Vec::new();
            let mut bytes = 0;
            for pair in table.range(range)? {
                let (index, value) = pair?;
                let (index, value) = (index.value(), sealed::entry(index.value(), value.value())?.to_vec());
                bytes += value.len();
                if bytes > most && !found.is_empty() {
                    break;
                }
                found.push((index, value));
            }
            Ok(found)
        });
        stored.await?.iter().map(|(index, bytes)| decode_entry(*index, bytes)).collect()
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        self.entries((range.start_bound().cloned(), range.end_bound().cloned()), usize::MAX).await
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        let Some(bytes) = self.0.run(|disk| disk.meta(VOTE)).await? else { return Ok(None) };
        let vote = pb::Vote::decode(bytes.as_slice()).map_err(undecodable)?;
        Ok(Some(codec::vote(Some(vote)).map_err(undecodable)?))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.entries((Bound::Included(start), Bound::Excluded(end)), MAX_BATCH_BYTES).await
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let last_purged_log_id = self.position(PURGED).await?;
        let last = self.0.run(|disk| {
            let table = disk.database.begin_read()?.open_table(LOG)?;
            let Some((index, value)) = table.last()? else { return Ok(None) };
            Ok(Some((index.value(), sealed::entry(index.value(), value.value())?.to_vec())))
        });
        let last_log_id = match last.await? {
            Some((index, bytes)) => Some(decode_entry(index, &bytes)?.log_id),
            None => last_purged_log_id,
        };
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let bytes = codec::pb_vote(vote).encode_to_vec();
        let write =
            move |disk: &Disk| disk.write(|transaction| sealed::put(&mut transaction.open_table(META)?, VOTE, bytes));
        self.0.run(write).await
    }

    /// Only advice for the next start, so it costs no fsync.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let Some(committed) = committed else { return Ok(()) };
        let bytes = codec::pb_log_id(&committed).encode_to_vec();
        let write = move |disk: &Disk| {
            disk.advise(|transaction| sealed::put(&mut transaction.open_table(META)?, COMMITTED, bytes))
        };
        self.0.run(write).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        self.position(COMMITTED).await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let encoded: Vec<(u64, Vec<u8>)> =
            entries.into_iter().map(|entry| (entry.log_id.index(), codec::pb_entry(&entry).encode_to_vec())).collect();
        let write = move |disk: &Disk| {
            disk.write(|transaction| {
                let mut table = transaction.open_table(LOG)?;
                encoded.into_iter().try_for_each(|(index, bytes)| sealed::put_entry(&mut table, index, bytes))
            })
        };
        self.0.run(write).await?;
        callback.io_completed(Ok(()));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let first = last.map_or(0, |id| id.index().saturating_add(1));
        let write = move |disk: &Disk| {
            disk.write(|transaction| Ok(transaction.open_table(LOG)?.retain_in(first.., |_, _| false)?))
        };
        self.0.run(write).await
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        let bytes = codec::pb_log_id(&upto).encode_to_vec();
        let write = move |disk: &Disk| {
            disk.write(|transaction| {
                sealed::put(&mut transaction.open_table(META)?, PURGED, bytes)?;
                Ok(transaction.open_table(LOG)?.retain_in(..=upto.index(), |_, _| false)?)
            })
        };
        self.0.run(write).await
    }
}
