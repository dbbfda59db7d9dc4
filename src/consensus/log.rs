//! openraft's log store: log, vote, committed and purged positions on the disk, and in memory the end of the log.
//! Nothing is acknowledged before fsync. What changes anything but the end waits until all before it is on the disk.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use prost::Message as _;
use redb::{ReadableDatabase as _, ReadableTable as _, WriteTransaction};

use super::disk::{Disk, LOG, META};
use super::recent::Batch;
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

fn decode_position(bytes: &[u8]) -> io::Result<LogId> {
    Ok(codec::log_id(pb::LogId::decode(bytes).map_err(undecodable)?))
}

/// Entries from before there were seals tell by themselves where they belong.
fn decode_entry(index: u64, bytes: &[u8]) -> io::Result<Entry> {
    let entry = codec::entry(pb::Entry::decode(bytes).map_err(undecodable)?).map_err(undecodable)?;
    let found = entry.log_id.index();
    if found == index { Ok(entry) } else { Err(undecodable(format!("entry {found} stands in the place of {index}"))) }
}

/// For how many bytes there is room in one answer; the first entry always has.
#[derive(Clone, Copy)]
struct Room {
    left: usize,
    is_used: bool,
}

impl Room {
    fn takes(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left || !self.is_used;
        self.left = if fits { self.left.saturating_sub(bytes) } else { 0 };
        self.is_used = true;
        fits
    }
}

/// Whether a range that begins so has anything before this position.
fn is_before(begin: Bound<u64>, position: u64) -> bool {
    match begin {
        Bound::Included(first) => first < position,
        Bound::Excluded(before) => before.saturating_add(1) < position,
        Bound::Unbounded => position > 0,
    }
}

fn write_batch(disk: &Disk, entries: Vec<(u64, Vec<u8>)>, committed: Option<Vec<u8>>) -> Result<(), redb::Error> {
    disk.write(|transaction| {
        let mut table = transaction.open_table(LOG)?;
        entries.into_iter().try_for_each(|(index, bytes)| sealed::put_entry(&mut table, index, bytes))?;
        committed.map_or(Ok(()), |bytes| put_committed(transaction, bytes))
    })
}

pub(super) fn put_committed(transaction: &WriteTransaction, bytes: Vec<u8>) -> Result<(), redb::Error> {
    sealed::put(&mut transaction.open_table(META)?, COMMITTED, bytes)
}

impl LogStore {
    /// Returns when everything that was accepted is on the disk.
    pub(super) async fn all_written(&self) -> io::Result<()> {
        self.0.recent.all_written().await
    }

    async fn position(&self, key: &'static str) -> io::Result<Option<LogId>> {
        self.0.run(move |disk| disk.meta(key)).await?.map(|bytes| decode_position(&bytes)).transpose()
    }

    pub(super) async fn entries(&self, range: (Bound<u64>, Bound<u64>), most: usize) -> io::Result<Vec<Entry>> {
        // First what is in memory: what is written meanwhile would be in neither the other way round.
        let recent = self.0.recent.within(range);
        let first = recent.first().map(|(entry, _)| entry.log_id.index());
        let stored = (range.0, first.map_or(range.1, Bound::Excluded));
        let is_all_recent = first.is_some_and(|first| !is_before(stored.0, first));
        let mut room = Room { left: most, is_used: false };
        let mut entries = if is_all_recent { Vec::new() } else { self.stored(stored, &mut room).await? };
        let fitting = recent.into_iter().take_while(|(_, bytes)| room.takes(*bytes));
        entries.extend(fitting.map(|(entry, _)| entry));
        Ok(entries)
    }

    async fn stored(&self, range: (Bound<u64>, Bound<u64>), room: &mut Room) -> io::Result<Vec<Entry>> {
        let mut left = *room;
        let read = self.0.run(move |disk| {
            let table = disk.database.begin_read()?.open_table(LOG)?;
            let mut found = Vec::new();
            for pair in table.range(range)? {
                let (index, value) = pair?;
                let (index, value) = (index.value(), sealed::entry(index.value(), value.value())?.to_vec());
                if !left.takes(value.len()) {
                    break;
                }
                found.push((index, value));
            }
            Ok((found, left))
        });
        let (found, left) = read.await?;
        *room = left;
        found.iter().map(|(index, bytes)| decode_entry(*index, bytes)).collect()
    }

    fn begin_writing(&self, is_due: bool) {
        if is_due {
            tokio::spawn(self.clone().write());
        }
    }

    /// One write after the other, each with all that has come since the one before.
    async fn write(self) {
        while let Some(Batch { entries, committed, flushed }) = self.0.recent.next() {
            let count = entries.len();
            let result = self.0.run(move |disk| write_batch(disk, entries, committed)).await;
            self.0.recent.written(count, flushed, result);
        }
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
        self.all_written().await?;
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
        self.all_written().await?;
        let bytes = codec::pb_vote(vote).encode_to_vec();
        let write =
            move |disk: &Disk| disk.write(|transaction| sealed::put(&mut transaction.open_table(META)?, VOTE, bytes));
        self.0.run(write).await
    }

    /// Only advice for the next start: written with the next entries, or when the disk is let go of.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        if let Some(committed) = committed {
            self.0.recent.advise(codec::pb_log_id(&committed).encode_to_vec());
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        self.all_written().await?;
        match self.0.recent.advice() {
            Some(bytes) => decode_position(&bytes).map(Some),
            None => self.position(COMMITTED).await,
        }
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.0.recent.has_room().await?;
        let encoded = |entry: Entry| {
            let bytes = codec::pb_entry(&entry).encode_to_vec();
            (entry, bytes)
        };
        self.begin_writing(self.0.recent.append(entries.into_iter().map(encoded).collect(), callback)?);
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.all_written().await?;
        let first = last.map_or(0, |id| id.index().saturating_add(1));
        self.0.recent.keep(|index| index < first);
        let write = move |disk: &Disk| {
            disk.write(|transaction| Ok(transaction.open_table(LOG)?.retain_in(first.., |_, _| false)?))
        };
        self.0.run(write).await
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        self.all_written().await?;
        self.0.recent.keep(|index| index > upto.index());
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
