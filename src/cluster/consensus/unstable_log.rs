//! The end of the log not yet on the disk. Other replicas receive an entry while the disk writes the entry, and entries
//! that arrive meanwhile are written together.

use std::fmt;
use std::io;
use std::mem::take;
use std::ops::{Bound, RangeBounds as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use openraft::storage::IOFlushed;
use tokio::sync::watch;

use super::types::{LogId, RaftEntry, Types};

/// The most unwritten entries: beyond this number no entry is accepted until the disk has all of them. A disk that
/// hangs blocks a leader as well.
const UNWRITTEN: usize = 256;

/// The data of the next write.
pub(super) struct Batch {
    pub(super) entries: Vec<RaftEntry>,
    /// Only a hint for the next start: written with entries, and never alone.
    pub(super) committed: Option<LogId>,
    pub(super) flushed: Vec<IOFlushed<Types>>,
}

#[derive(Default)]
struct LogEnd {
    /// Without holes.
    entries: Vec<RaftEntry>,
    committed: Option<LogId>,
    flushed: Vec<IOFlushed<Types>>,
    /// The reason why writing has stopped: after a failure the content of the disk is unknown.
    failed: Option<String>,
}

/// The unwritten end of the log, shared by all readers of the log.
pub(super) struct UnstableLog {
    end: Mutex<LogEnd>,
    is_writing: watch::Sender<bool>,
}

impl Default for UnstableLog {
    fn default() -> Self {
        Self { end: Mutex::default(), is_writing: watch::Sender::new(false) }
    }
}

impl fmt::Debug for UnstableLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recent")
    }
}

impl UnstableLog {
    fn end(&self) -> MutexGuard<'_, LogEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds entries, readable on return; `flushed` is notified when the entries are on the disk. True if a writer is to
    /// be started.
    pub(super) fn append(
        &self,
        entries: impl IntoIterator<Item = RaftEntry>,
        flushed: IOFlushed<Types>,
    ) -> io::Result<bool> {
        let mut end = self.end();
        end.refuse_after_failure()?;
        end.entries.extend(entries);
        end.flushed.push(flushed);
        drop(end);
        Ok(self.is_writing.send_if_modified(|is_writing| !std::mem::replace(is_writing, true)))
    }

    pub(super) fn set_committed_hint(&self, committed: LogId) {
        self.end().committed = Some(committed);
    }

    /// The committed position not yet on the disk; `None` while the entries up to the position may be unwritten too,
    /// because no start works from a position beyond the log.
    pub(super) fn committed_hint(&self) -> Option<LogId> {
        let end = self.end();
        end.committed.filter(|_| end.entries.is_empty() && end.failed.is_none())
    }

    /// For the writer; `None` when everything is on the disk, or after a failed write: a later write would leave a
    /// hole.
    pub(super) fn next(&self) -> Option<Batch> {
        let mut end = self.end();
        if end.entries.is_empty() || end.failed.is_some() {
            // Under the lock: the next caller of `append` starts another writer.
            self.is_writing.send_replace(false);
            let flushed = take(&mut end.flushed);
            end.tell(flushed);
            return None;
        }
        let entries = end.entries.clone();
        Some(Batch { entries, committed: end.committed.take(), flushed: take(&mut end.flushed) })
    }

    /// For the writer: the result of the batch, which had `count` entries.
    pub(super) fn written(&self, count: usize, flushed: Vec<IOFlushed<Types>>, result: io::Result<()>) {
        let mut end = self.end();
        match result {
            Ok(()) => drop(end.entries.drain(..count)),
            Err(why) => end.failed = Some(why.to_string()),
        }
        end.tell(flushed);
    }

    /// Returns when there is room for more.
    pub(super) async fn has_room(&self) -> io::Result<()> {
        if self.end().entries.len() < UNWRITTEN { Ok(()) } else { self.all_written().await }
    }

    /// Returns when all accepted entries are on the disk.
    pub(super) async fn all_written(&self) -> io::Result<()> {
        let _ = self.is_writing.subscribe().wait_for(|is_writing| !is_writing).await;
        self.end().refuse_after_failure()
    }

    /// The unwritten entries of a range: all entries before the first returned entry are on the disk.
    pub(super) fn within(&self, range: (Bound<u64>, Bound<u64>)) -> Vec<RaftEntry> {
        let end = self.end();
        end.entries.iter().filter(|entry| range.contains(&entry.log_id.index())).cloned().collect()
    }
}

impl LogEnd {
    fn refuse_after_failure(&self) -> io::Result<()> {
        self.failed.as_ref().map_or(Ok(()), |why| Err(io::Error::other(why.clone())))
    }

    /// Notifies the callers: the entries are on the disk, or the reason why the entries may be missing.
    fn tell(&self, flushed: Vec<IOFlushed<Types>>) {
        for flushed in flushed {
            flushed.io_completed(self.refuse_after_failure());
        }
    }
}
