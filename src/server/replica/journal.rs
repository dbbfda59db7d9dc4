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
mod tests {
    use super::*;
    use allclear_core::apply::apply;
    use allclear_core::isolation::reconciliation::is_entry_needed;
    use allclear_core::model::command::{ApplyResult, Command, Entry, ReconcileJournal};
    use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use allclear_core::model::id::{EventId, VmName};
    use allclear_core::model::reconcile_state::ReconcileState;
    use allclear_core::model::state::State;

    fn entry(id: &str) -> JournalEntry {
        let announcement = Announcement {
            id: EventId::new(id),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::User,
            resource_type: String::new(),
            resources: vec![VmName::new("db-0")],
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        };
        let takeover = IsolatedApproval {
            approver: VmName::new("db-1"),
            at: Timestamp(1),
            alone_since: Timestamp(0),
            out_of_reach: vec![VmName::new("db-0")],
            requested_by: None,
            outcome: None,
            recorded: None,
        };
        JournalEntry { announcement, approval: takeover }
    }

    #[tokio::test]
    async fn what_was_begun_and_not_ended_in_an_earlier_life_has_an_unknown_end() {
        let folder = tempfile::tempdir().unwrap();
        let journal = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        assert!(journal.entries().is_empty());
        assert!(journal.begin(entry("e1"), || true).await.unwrap());
        journal.end(&entry("e1").approval, PostOutcome::Accepted, Timestamp(9)).await.unwrap();
        let mut second = entry("e2");
        second.approval.at = Timestamp(2);
        assert!(journal.begin(second, || true).await.unwrap());
        drop(journal);
        let next_life = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        assert_eq!(next_life.entries().len(), 2);
        assert!(next_life.entries()[0].approval.outcome_is(&PostOutcome::Accepted));
        let last = next_life.entries().last().cloned().unwrap();
        assert!(matches!(last.approval.outcome, Some((PostOutcome::Unknown(_), _))), "{last:?}");
    }

    #[tokio::test]
    async fn one_that_was_kept_is_not_new_though_it_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let journal = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        assert!(journal.is_new());
        journal.keep().await.unwrap();
        let next = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        assert!(!next.is_new() && next.entries().is_empty());
    }

    #[tokio::test]
    async fn nothing_is_written_once_it_may_no_longer_be() {
        let folder = tempfile::tempdir().unwrap();
        let journal = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        assert!(!journal.begin(entry("e1"), || false).await.unwrap());
        assert!(ApprovalJournal::open(folder.path(), Environment::default()).unwrap().entries().is_empty());
    }

    #[tokio::test]
    async fn only_what_the_log_knows_to_its_end_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let journal = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        journal.begin(entry("e1"), || true).await.unwrap();
        let mut state = State::default();
        let suspicion = ReconcileState { number: 1, since: Timestamp(0), is_reconciled: false };
        state.reconcile_states.insert(VmName::new("db-1"), suspicion);
        let give_account = |state: &mut State, journal: &ApprovalJournal| {
            let command =
                Command::ReconcileJournal(ReconcileJournal { number: 1, journal: journal.entries().as_ref().clone() });
            apply(state, &Entry { at: Timestamp(2), by: VmName::new("db-1"), command })
        };
        assert_eq!(give_account(&mut state, &journal), ApplyResult::Applied);
        journal.prune(|entry| is_entry_needed(&state, entry)).await.unwrap();
        assert_eq!(journal.entries().len(), 1, "its end is not known");
        journal.end(&entry("e1").approval, PostOutcome::Accepted, Timestamp(9)).await.unwrap();
        journal.prune(|entry| is_entry_needed(&state, entry)).await.unwrap();
        assert_eq!(journal.entries().len(), 1, "its end is not in the log");
        assert_eq!(give_account(&mut state, &journal), ApplyResult::Applied);
        journal.prune(|entry| is_entry_needed(&state, entry)).await.unwrap();
        assert!(ApprovalJournal::open(folder.path(), Environment::default()).unwrap().entries().is_empty());
    }

    #[tokio::test]
    async fn an_outcome_that_the_disk_refuses_is_kept_and_written_later() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("data");
        fs::create_dir(&place).unwrap();
        let journal = ApprovalJournal::open(&place, Environment::default()).unwrap();
        assert!(journal.begin(entry("e1"), || true).await.unwrap());
        fs::remove_dir_all(&place).unwrap();
        journal.end(&entry("e1").approval, PostOutcome::Accepted, Timestamp(9)).await.unwrap_err();
        let accepted = Some((PostOutcome::Accepted, Timestamp(9)));
        assert_eq!(journal.entries()[0].approval.outcome, accepted);
        fs::create_dir(&place).unwrap();
        journal.keep().await.unwrap();
        let journal = ApprovalJournal::open(&place, Environment::default()).unwrap();
        assert_eq!(journal.entries()[0].approval.outcome, accepted);
    }

    #[tokio::test]
    async fn a_journal_that_is_cut_off_or_changed_by_a_bit_is_refused_or_read_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let journal = ApprovalJournal::open(folder.path(), Environment::default()).unwrap();
        journal.begin(entry("e1"), || true).await.unwrap();
        journal.end(&entry("e1").approval, PostOutcome::Accepted, Timestamp(9)).await.unwrap();
        let (written, path) = (journal.entries(), folder.path().join(FILE));
        let whole = fs::read(&path).unwrap();
        let cut_off = (0..whole.len()).map(|end| whole[..end].to_vec());
        let flipped = (0..whole.len() * 8).map(|bit| {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped
        });
        for (at, bytes) in cut_off.chain(flipped).enumerate() {
            fs::write(&path, &bytes).unwrap();
            match ApprovalJournal::open(folder.path(), Environment::default()) {
                Ok(read) => assert_eq!(read.entries(), written, "change {at}"),
                Err(error) => {
                    let told = error.to_string();
                    assert!(told.contains("restore the file, or remove the replica"), "change {at}: {told}");
                }
            }
        }
    }

    #[test]
    fn a_journal_that_cannot_be_read_is_never_taken_for_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        for damaged in [&b""[..], b"\x0a", b"rubbish"] {
            fs::write(folder.path().join(FILE), damaged).unwrap();
            assert!(
                matches!(
                    ApprovalJournal::open(folder.path(), Environment::default()),
                    Err(ApprovalJournalError::Unreadable { .. })
                ),
                "{damaged:?}"
            );
        }
    }
}
