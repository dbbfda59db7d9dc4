//! The journal: approvals of this replica without a quorum. Each approval is written and synced before the post and
//! after the post, and kept until the log has the outcome.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard, watch};

use super::clock;
use crate::consensus::Environment;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear_core::model::time::Timestamp;
use allclear_wire::{checksum, log};

const FILE: &str = "journal";
/// The next journal, which replaces the journal when complete.
const NEXT_FILE: &str = "journal.next";
/// The place included in the journal's checksum.
const PLACE: &[u8] = b"journal";

#[derive(Debug, thiserror::Error)]
pub enum ApprovalJournalError {
    #[error(
        "{}: {error}; the file contains the isolated approvals of this replica, and the other replicas need these \
         records: restore the file, or remove the replica from the cluster and start the replica with an empty data \
         directory",
        path.display()
    )]
    Unreadable { path: PathBuf, error: String },
    #[error("{}: {error}", path.display())]
    Disk { path: PathBuf, error: io::Error },
}

pub struct ApprovalJournal {
    folder: PathBuf,
    environment: Environment,
    /// Held while an entry is written and while a reconciliation of the journal is built.
    turn: Mutex<()>,
    entries: watch::Sender<Arc<Vec<JournalEntry>>>,
    is_new: bool,
}

impl ApprovalJournal {
    /// Reads the journal of a data directory. An approval left unfinished by a previous run has an unknown outcome.
    pub fn open(folder: &Path, environment: Environment) -> Result<Self, ApprovalJournalError> {
        let path = folder.join(FILE);
        let mut is_new = false;
        let mut entries = match fs::read(&path) {
            Ok(bytes) => read(&bytes).map_err(|error| ApprovalJournalError::Unreadable { path, error })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                is_new = true;
                Vec::new()
            }
            Err(error) => return Err(ApprovalJournalError::Disk { path, error }),
        };
        for entry in entries.iter_mut().filter(|entry| entry.approval.outcome.is_none()) {
            let why = "this replica was restarted, so the outcome of the post is unknown";
            entry.approval.outcome = Some((PostOutcome::Unknown(why.into()), clock::now()));
        }
        let entries = watch::Sender::new(Arc::new(entries));
        Ok(Self { folder: folder.into(), environment, turn: Mutex::new(()), entries, is_new })
    }

    /// No journal existed on opening: approvals from before the disk existed are missing in the journal.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Writes the journal, which is no longer new from the next start on.
    pub async fn keep(&self) -> io::Result<()> {
        let _turn = self.turn.lock().await;
        self.write(|_| {}).await
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn environment(&self) -> Environment {
        self.environment
    }

    pub fn entries(&self) -> Arc<Vec<JournalEntry>> {
        self.entries.borrow().clone()
    }

    pub fn changes(&self) -> watch::Receiver<Arc<Vec<JournalEntry>>> {
        self.entries.subscribe()
    }

    /// Locks the journal. While the guard is held no entry is begun: a reconciliation stays true until the
    /// reconciliation is built.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Writes an approval that is about to be posted, if `may_still` allows the post; otherwise returns false. The
    /// entry is on disk on return.
    pub async fn begin(&self, entry: JournalEntry, may_still: impl FnOnce() -> bool) -> io::Result<bool> {
        let _turn = self.turn.lock().await;
        if !may_still() {
            return Ok(false);
        }
        self.write(|entries| entries.push(entry)).await?;
        Ok(true)
    }

    /// Writes the outcome of the post. If the disk refuses the write, the outcome stays in memory, where the report to
    /// the log takes it from, and the next write contains it.
    pub async fn end(&self, begun: &IsolatedApproval, outcome: PostOutcome, at: Timestamp) -> io::Result<()> {
        let _turn = self.turn.lock().await;
        let end = Some((outcome, at));
        let settle = |entries: &mut Vec<JournalEntry>| {
            for entry in entries.iter_mut().filter(|entry| entry.approval == *begun) {
                entry.approval.outcome.clone_from(&end);
            }
        };
        let written = self.write(settle).await;
        if written.is_err() {
            self.entries.send_modify(|entries| settle(Arc::make_mut(entries)));
        }
        written
    }

    /// Removes the entries whose outcome the log has.
    pub async fn prune(&self, is_needed: impl Fn(&JournalEntry) -> bool) -> io::Result<()> {
        let _turn = self.turn.lock().await;
        if self.entries().iter().all(&is_needed) {
            return Ok(());
        }
        self.write(|entries| entries.retain(|entry| is_needed(entry))).await
    }

    async fn write(&self, change: impl FnOnce(&mut Vec<JournalEntry>)) -> io::Result<()> {
        let mut entries = self.entries().as_ref().clone();
        change(&mut entries);
        let (folder, bytes) = (self.folder.clone(), checksum::append_checksum(PLACE, log::encode_journal(&entries)));
        self.environment.result_of(move || replace(&folder, &bytes)).await??;
        self.entries.send_replace(Arc::new(entries));
        Ok(())
    }
}

fn read(sealed: &[u8]) -> Result<Vec<JournalEntry>, String> {
    let journal = checksum::verify_checksum(PLACE, sealed).map_err(|changed| changed.to_string())?;
    log::decode_journal(journal).map_err(|error| error.to_string())
}

/// Replaces the journal. A crash leaves the complete old or the complete new journal.
fn replace(folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let next = folder.join(NEXT_FILE);
    let mut file = File::create(&next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(next, folder.join(FILE))?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
