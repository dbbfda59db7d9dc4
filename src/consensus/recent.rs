//! The end of the log in memory: what is accepted and not on the disk yet, and a little of what came before it. So other
//! replicas hear of an entry while the disk writes it, what came meanwhile goes to the disk in one write, and what was
//! just written is sent and applied without being read again.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem::take;
use std::ops::{Bound, RangeBounds as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use openraft::storage::IOFlushed;
use tokio::sync::watch;

use super::types::{Entry, Types};

/// Of what is on the disk already, no more than this is kept.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 64 << 10;

/// Beyond this nothing is accepted until the disk has it all: where it hangs, a leader is held up as well.
const UNWRITTEN: usize = 256;

/// What is to be written next.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<(u64, Vec<u8>)>,
    /// Only advice for the next start: it goes with entries, and never alone.
    pub(super) committed: Option<Vec<u8>>,
    pub(super) flushed: Vec<IOFlushed<Types>>,
}

#[derive(Default)]
struct End {
    /// Without holes, each with its bytes on the disk.
    entries: VecDeque<(Entry, usize)>,
    /// So many of them, the last ones, are not on the disk.
    unwritten: usize,
    next: Batch,
    /// Why nothing is written any more: after a failure nobody knows what is on the platter.
    failed: Option<String>,
}

/// Shared by all who read the log.
pub(super) struct Recent {
    end: Mutex<End>,
    is_writing: watch::Sender<bool>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { end: Mutex::default(), is_writing: watch::Sender::new(false) }
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recent")
    }
}

impl Recent {
    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Readable when this returns; `flushed` is told when they are on the disk. True where a writer is to be started.
    pub(super) fn append(&self, entries: Vec<(Entry, Vec<u8>)>, flushed: IOFlushed<Types>) -> io::Result<bool> {
        let mut end = self.end();
        end.refuse_after_failure()?;
        let adjoins = |last: &(Entry, usize), first: &(Entry, Vec<u8>)| {
            last.0.log_id.index().checked_add(1) == Some(first.0.log_id.index())
        };
        if !end.entries.back().zip(entries.first()).is_some_and(|(last, first)| adjoins(last, first)) {
            if end.unwritten > 0 {
                return Err(io::Error::other("entries were appended behind a hole of the log"));
            }
            end.entries.clear();
        }
        end.unwritten += entries.len();
        for (entry, bytes) in entries {
            end.entries.push_back((entry.clone(), bytes.len()));
            end.next.entries.push((entry.log_id.index(), bytes));
        }
        end.next.flushed.push(flushed);
        drop(end);
        Ok(self.begin())
    }

    pub(super) fn advise(&self, committed: Vec<u8>) {
        self.end().next.committed = Some(committed);
    }

    /// What is not on the disk of it; nothing while the entries that it may be about are not either, for no start finds
    /// its way from a position beyond the log.
    pub(super) fn advice(&self) -> Option<Vec<u8>> {
        let end = self.end();
        end.next.committed.clone().filter(|_| end.unwritten == 0 && end.failed.is_none())
    }

    fn begin(&self) -> bool {
        self.is_writing.send_if_modified(|is_writing| !std::mem::replace(is_writing, true))
    }

    /// For the writer; nothing when everything is on the disk, or a write has failed: a later one would leave a hole.
    pub(super) fn next(&self) -> Option<Batch> {
        let mut end = self.end();
        if end.next.entries.is_empty() || end.failed.is_some() {
            // Under the lock: whoever adds something now starts another writer.
            self.is_writing.send_replace(false);
            let flushed = take(&mut end.next.flushed);
            end.tell(flushed);
            return None;
        }
        Some(take(&mut end.next))
    }

    /// For the writer: what became of so many entries.
    pub(super) fn written(&self, count: usize, flushed: Vec<IOFlushed<Types>>, result: io::Result<()>) {
        let mut end = self.end();
        match result {
            Ok(()) => {
                end.unwritten = end.unwritten.saturating_sub(count);
                end.let_go();
            }
            Err(why) => end.failed = Some(end.failed.take().unwrap_or_else(|| why.to_string())),
        }
        end.tell(flushed);
    }

    /// Returns when there is room for more.
    pub(super) async fn has_room(&self) -> io::Result<()> {
        if self.end().unwritten < UNWRITTEN { Ok(()) } else { self.all_written().await }
    }

    /// Returns when everything that was accepted is on the disk.
    pub(super) async fn all_written(&self) -> io::Result<()> {
        let _ = self.is_writing.subscribe().wait_for(|is_writing| !is_writing).await;
        self.end().refuse_after_failure()
    }

    /// Those of a range that are here, each with its bytes: what comes before the first of them is on the disk.
    pub(super) fn within(&self, range: (Bound<u64>, Bound<u64>)) -> Vec<(Entry, usize)> {
        let end = self.end();
        end.entries.iter().filter(|(entry, _)| range.contains(&entry.log_id.index())).cloned().collect()
    }

    /// Those of other positions are no longer in the log.
    pub(super) fn keep(&self, is_kept: impl Fn(u64) -> bool) {
        self.end().entries.retain(|(entry, _)| is_kept(entry.log_id.index()));
    }
}

impl End {
    fn refuse_after_failure(&self) -> io::Result<()> {
        self.failed.as_ref().map_or(Ok(()), |why| Err(io::Error::other(why.clone())))
    }

    /// That their entries are on the disk, or why they may not be.
    fn tell(&self, flushed: Vec<IOFlushed<Types>>) {
        for flushed in flushed {
            flushed.io_completed(self.refuse_after_failure());
        }
    }

    fn let_go(&mut self) {
        let mut bytes: usize = self.entries.iter().map(|(_, bytes)| bytes).sum();
        while self.entries.len() > self.unwritten && (self.entries.len() > KEPT || bytes > KEPT_BYTES) {
            bytes -= self.entries.pop_front().map_or(0, |(_, bytes)| bytes);
        }
    }
}
