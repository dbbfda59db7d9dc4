//! The end of the log in memory, and the disk behind it.

use std::sync::{Arc, Condvar, Mutex};

use futures_util::FutureExt;
use openraft::alias::{LeaderIdOf, OneshotReceiverOf};
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, RaftLogStorage as _};
use openraft::type_config::TypeConfigExt as _;
use openraft::vote::RaftLeaderId as _;
use openraft::{EntryPayload, RaftLogReader as _};
use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::disk::Disk;
use super::log::LogStore;
use super::types::{LogId, Proposed, RaftEntry, RaftVote, Types};
use super::unstable_log::UnstableLog;

/// A disk that blocks all writes while held up, and counts the syncs.
#[derive(Debug, Clone, Default)]
struct Slow {
    disk: Arc<InMemory>,
    held_up: Arc<(Mutex<bool>, Condvar)>,
    syncs: Arc<Mutex<usize>>,
}

#[derive(Debug)]
struct InMemory(InMemoryBackend);

impl Default for InMemory {
    fn default() -> Self {
        Self(InMemoryBackend::new())
    }
}

impl Slow {
    fn hold_up(&self, held_up: bool) {
        *self.held_up.0.lock().unwrap() = held_up;
        self.held_up.1.notify_all();
    }

    fn syncs(&self) -> usize {
        *self.syncs.lock().unwrap()
    }
}

impl StorageBackend for Slow {
    fn len(&self) -> std::io::Result<u64> {
        self.disk.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.disk.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.disk.0.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        drop(self.held_up.1.wait_while(self.held_up.0.lock().unwrap(), |held_up| *held_up).unwrap());
        *self.syncs.lock().unwrap() += 1;
        self.disk.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.disk.0.write(offset, data)
    }
}

fn entry(index: u64, size: usize) -> RaftEntry {
    let bytes = format!("{index} ").repeat(size / 2);
    RaftEntry::new(LogId::new(1.into(), index), EntryPayload::Normal(Proposed(bytes.into())))
}

async fn append(store: &mut LogStore, entries: Vec<RaftEntry>) -> OneshotReceiverOf<Types, std::io::Result<()>> {
    let (flushed, is_flushed) = Types::oneshot();
    store.append(entries, IOFlushed::signal(flushed)).await.unwrap();
    is_flushed
}

#[tokio::test]
async fn what_the_disk_has_yet_to_write_is_read_and_not_acknowledged_and_written_together() {
    let backend = Slow::default();
    let mut store = LogStore(Disk::on(backend.clone(), None).unwrap());
    let before = backend.syncs();
    backend.hold_up(true);
    let mut acknowledged = Vec::new();
    for index in 0..50 {
        acknowledged.push(append(&mut store, vec![entry(index, 8)]).await);
        tokio::task::yield_now().await;
    }
    store.save_committed(Some(LogId::new(1.into(), 3))).await.unwrap();
    let vote = RaftVote { leader_id: LeaderIdOf::<Types>::new(1, 1), committed: false };
    let written = (0..50).map(|index| entry(index, 8)).collect::<Vec<_>>();
    assert_eq!(store.try_get_log_entries(..).await.unwrap(), written);
    assert!(acknowledged.iter_mut().all(|flushed| flushed.now_or_never().is_none()));
    let mut voting = store.clone();
    let voted = tokio::spawn(async move { voting.save_vote(&vote).await });
    tokio::task::yield_now().await;
    backend.hold_up(false);
    voted.await.unwrap().unwrap();
    let mut told = acknowledged.iter_mut().map(FutureExt::now_or_never);
    assert!(told.all(|flushed| matches!(flushed, Some(Ok(Ok(()))))), "a vote overtook an entry");
    assert_eq!(backend.syncs() - before, 3, "the first entry alone, then the others together, and the vote");
    assert_eq!(store.try_get_log_entries(..).await.unwrap(), written);
    assert_eq!(store.read_committed().await.unwrap(), Some(LogId::new(1.into(), 3)));
}

#[tokio::test]
async fn behind_a_disk_that_hangs_only_so_much_is_accepted() {
    let backend = Slow::default();
    let mut store = LogStore(Disk::on(backend.clone(), None).unwrap());
    backend.hold_up(true);
    let mut accepted = 0;
    while store.append([entry(accepted, 8)], IOFlushed::noop()).now_or_never().is_some() && accepted < 10_000 {
        accepted += 1;
    }
    assert_eq!(accepted, 256);
    backend.hold_up(false);
    append(&mut store, vec![entry(accepted, 8)]).await.await.unwrap().unwrap();
    assert_eq!(store.try_get_log_entries(..).await.unwrap().len(), 257);
}

#[tokio::test]
async fn after_a_write_that_failed_nothing_is_written_behind_it() {
    let recent = UnstableLog::default();
    let (flushed, is_flushed) = Types::oneshot();
    assert!(recent.append([entry(0, 8)], IOFlushed::noop()).unwrap());
    let first = recent.next().unwrap();
    assert!(!recent.append([entry(1, 8)], IOFlushed::signal(flushed)).unwrap());
    recent.written(1, first.flushed, Err(std::io::Error::other("the platter is gone")));
    assert!(recent.next().is_none(), "it would leave a hole");
    assert!(is_flushed.await.unwrap().unwrap_err().to_string().contains("the platter is gone"));
    assert!(recent.append([entry(2, 8)], IOFlushed::noop()).is_err());
    assert!(recent.all_written().await.is_err());
}

#[tokio::test]
async fn an_answer_that_is_full_has_no_hole_where_memory_begins() {
    let mut store = LogStore(Disk::on(Slow::default(), None).unwrap());
    for index in 0..40 {
        append(&mut store, vec![entry(index, 100 << 10)]).await.await.unwrap().unwrap();
    }
    for index in 40..60 {
        append(&mut store, vec![entry(index, 8)]).await.await.unwrap().unwrap();
    }
    for start in [0, 20, 35, 39, 43, 44, 50] {
        let found = store.limited_get_log_entries(start, 60).await.unwrap();
        let expected = (start..60).map(|index| entry(index, if index < 40 { 100 << 10 } else { 8 }));
        let expected: Vec<RaftEntry> = expected.take(found.len()).collect();
        assert!(!found.is_empty() && found == expected, "from {start}");
    }
}

#[tokio::test]
async fn what_was_cut_off_is_gone_from_memory_too() {
    let mut store = LogStore(Disk::on(Slow::default(), None).unwrap());
    append(&mut store, (0..10).map(|index| entry(index, 8)).collect()).await.await.unwrap().unwrap();
    store.truncate_after(Some(LogId::new(1.into(), 5))).await.unwrap();
    store.purge(LogId::new(1.into(), 2)).await.unwrap();
    let found = store.try_get_log_entries(..).await.unwrap();
    assert_eq!(found, (3..6).map(|index| entry(index, 8)).collect::<Vec<_>>());
    append(&mut store, vec![entry(6, 8)]).await.await.unwrap().unwrap();
    assert_eq!(store.try_get_log_entries(5..).await.unwrap(), [entry(5, 8), entry(6, 8)]);
}

#[tokio::test]
async fn how_far_the_log_is_committed_is_written_with_the_next_entries_or_at_the_end_and_never_alone() {
    let backend = Slow::default();
    let opened = || LogStore(Disk::on(backend.clone(), None).unwrap());
    let [first, second] = [0, 1].map(|index| LogId::new(1.into(), index));
    let mut store = opened();
    append(&mut store, vec![entry(0, 8)]).await.await.unwrap().unwrap();
    let before = backend.syncs();
    store.save_committed(Some(first)).await.unwrap();
    store.all_written().await.unwrap();
    assert_eq!(store.read_committed().await.unwrap(), Some(first));
    assert_eq!(backend.syncs(), before);
    append(&mut store, vec![entry(1, 8)]).await.await.unwrap().unwrap();
    assert_eq!(backend.syncs(), before + 1);
    // As a killed process does.
    std::mem::forget(store);
    let mut store = opened();
    assert_eq!(store.read_committed().await.unwrap(), Some(first));
    store.save_committed(Some(second)).await.unwrap();
    drop(store);
    assert_eq!(opened().read_committed().await.unwrap(), Some(second));
}

#[tokio::test]
async fn a_disk_that_is_let_go_of_before_everything_is_on_it_is_not_told_of_a_position_beyond_its_log() {
    let backend = Slow::default();
    let mut store = LogStore(Disk::on(backend.clone(), None).unwrap());
    backend.hold_up(true);
    for index in 0..2 {
        drop(append(&mut store, vec![entry(index, 8)]).await);
        tokio::task::yield_now().await;
    }
    // Other replicas may have the entry, so the entry may be committed.
    store.save_committed(Some(LogId::new(1.into(), 1))).await.unwrap();
    let early = store.0.recent.committed_hint();
    backend.hold_up(false);
    assert_eq!(early, None);
    store.all_written().await.unwrap();
    assert_eq!(store.read_committed().await.unwrap(), Some(LogId::new(1.into(), 1)));
}
