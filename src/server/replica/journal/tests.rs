//! The journal after a restart, on a disk that refuses a write, and with damaged files.

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
