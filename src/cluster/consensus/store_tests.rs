//! The store passes openraft's own suite, and a failing disk stops the replica before anything more is acknowledged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use bytes::Bytes;
use openraft::RaftSnapshotBuilder as _;
use openraft::storage::RaftStateMachine as _;
use openraft::testing::log::{StoreBuilder, Suite};
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;

use super::disk::Disk;
use super::environment::Environment;
use super::log::LogStore;
use super::options::MAX_LOG_BYTES;
use super::state_machine_store::StateMachineStore;
use super::tables::{META, SNAPSHOT};
use super::types::{LogId, SnapshotMeta, StoredMembership, Types};
use super::{Consensus, NotUnderstood, Options, RaftRole, RaftTiming, RequestError, SNAPSHOT_EVERY, StateMachine};

const LIMIT: Duration = Duration::from_secs(30);

/// Counts the applied entries.
#[derive(Default)]
pub(super) struct Counter {
    count: u64,
    shown: Arc<Mutex<u64>>,
}

impl StateMachine for Counter {
    fn stamp_entry(&self, proposal: &[u8], _by: &str) -> Result<Vec<u8>, NotUnderstood> {
        Ok(proposal.into())
    }

    fn understands(&self, _entry: &[u8]) -> Result<(), NotUnderstood> {
        Ok(())
    }

    fn understands_snapshot(&self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        <[u8; 8]>::try_from(snapshot).map(drop).map_err(|_| NotUnderstood("not a count".into()))
    }

    fn apply(&mut self, _index: u64, _entry: &[u8]) -> Result<Vec<u8>, NotUnderstood> {
        self.count += 1;
        Ok(Vec::new())
    }

    fn published(&mut self) {
        *self.shown.lock().unwrap() = self.count;
    }

    fn snapshot(&self) -> Vec<u8> {
        self.count.to_be_bytes().into()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        let bytes = snapshot.try_into().map_err(|_| NotUnderstood("not a count".into()))?;
        self.count = u64::from_be_bytes(bytes);
        Ok(())
    }
}

struct Fresh;

impl StoreBuilder<Types, LogStore, StateMachineStore, TempDir> for Fresh {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachineStore), openraft::StorageError<Types>> {
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk::open(directory.path(), "orders", "db-0").unwrap();
        let state_machine: Box<dyn StateMachine> = Box::new(Counter::default());
        let state =
            StateMachineStore::new(Arc::clone(&disk), Arc::new(RwLock::new(state_machine)), watch::Sender::new(None));
        Ok((directory, LogStore(disk), state))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_passes_openrafts_suite() {
    Suite::test_all(Fresh).await.unwrap();
}

fn meta(index: u64) -> SnapshotMeta {
    SnapshotMeta { last_log_id: Some(LogId::new(1.into(), index)), last_membership: StoredMembership::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_cannot_be_read_any_more_is_replaced() {
    let (_directory, log, mut state) = Fresh.build().await.unwrap();
    let eight = Bytes::copy_from_slice(&8_u64.to_be_bytes());
    state.install_snapshot(&meta(5), eight.clone()).await.unwrap();
    let damage = |transaction: &redb::WriteTransaction| {
        transaction.open_table(META)?.insert(SNAPSHOT, b"nonsense".as_slice())?;
        Ok(())
    };
    log.0.write(damage).unwrap();
    state.install_snapshot(&meta(9), eight).await.unwrap();
    assert_eq!(state.get_current_snapshot().await.unwrap().unwrap().meta, meta(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_was_overtaken_does_not_replace_the_newer_one() {
    let (_directory, _log, mut state) = Fresh.build().await.unwrap();
    let eight = Bytes::copy_from_slice(&8_u64.to_be_bytes());
    state.install_snapshot(&meta(5), eight.clone()).await.unwrap();
    let mut overtaken = state.get_snapshot_builder().await;
    state.install_snapshot(&meta(9), eight).await.unwrap();
    overtaken.build_snapshot().await.unwrap();
    assert_eq!(state.get_current_snapshot().await.unwrap().unwrap().meta, meta(9));
}

/// A disk with a failure of the next fsync, once `failing` is set.
#[derive(Debug)]
struct Failing {
    disk: InMemoryBackend,
    failing: Arc<AtomicBool>,
}

impl StorageBackend for Failing {
    fn len(&self) -> std::io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        // Only once: later successes must not help.
        if self.failing.swap(false, Ordering::SeqCst) {
            return Err(std::io::Error::other("the platter is gone"));
        }
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.disk.write(offset, data)
    }
}

/// A cluster of one.
fn alone() -> Options {
    Options {
        max_voters: 7,
        replace_after: Duration::from_mins(10),
        rejoin_after: Duration::from_mins(1),
        cluster: "orders".into(),
        replica: "db-0".into(),
        replicas: vec![("db-0".into(), "127.0.0.1:1".into())],
        data_dir: "unused".into(),
        timing: RaftTiming::default(),
        snapshot_every: SNAPSHOT_EVERY,
        tls: None,
        environment: Environment::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_large_entries_is_folded_before_there_are_many_and_nothing_is_lost() {
    const ENTRIES: u64 = 96;
    let directory = tempfile::tempdir().unwrap();
    for count in [ENTRIES, ENTRIES + 1] {
        let state_machine = Counter::default();
        let shown = Arc::clone(&state_machine.shown);
        let disk = Disk::open(directory.path(), "orders", "db-0").unwrap();
        let mut weighs = disk.weights.all();
        assert!(*weighs.borrow() <= MAX_LOG_BYTES, "at the start");
        let (consensus, _routes) = Consensus::open_on(disk, alone(), Box::new(state_machine)).await.unwrap();
        let mut raft_status = consensus.status();
        timeout(LIMIT, raft_status.wait_for(|now| now.role == RaftRole::Leader)).await.unwrap().unwrap();
        let known = *shown.lock().unwrap();
        for _ in known..count {
            consensus.propose(vec![7; 512 << 10]).await.unwrap();
        }
        assert_eq!(*shown.lock().unwrap(), count);
        timeout(LIMIT, weighs.wait_for(|all| *all <= MAX_LOG_BYTES)).await.expect("it is too large").unwrap();
        let bytes = Disk::bytes(directory.path()).unwrap();
        assert!(bytes <= 128 << 20, "{} MiB on the disk", bytes >> 20);
        assert!(consensus.shutdown().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_fsync_nothing_more_is_acknowledged_and_the_replica_must_exit() {
    let failing = Arc::new(AtomicBool::new(false));
    let backend = Failing { disk: InMemoryBackend::new(), failing: Arc::clone(&failing) };
    let state_machine = Counter::default();
    let shown = Arc::clone(&state_machine.shown);
    let disk = Disk::on(backend, None).unwrap();
    let (consensus, _routes) = Consensus::open_on(disk, alone(), Box::new(state_machine)).await.unwrap();
    let mut raft_status = consensus.status();
    timeout(LIMIT, raft_status.wait_for(|now| now.role == RaftRole::Leader)).await.unwrap().unwrap();
    consensus.propose("durable").await.unwrap();
    assert_eq!(*shown.lock().unwrap(), 1);

    failing.store(true, Ordering::SeqCst);
    let lost = consensus.propose("lost").await;
    assert!(matches!(lost, Err(RequestError::Unknown(_))), "{lost:?}");
    let fatal = timeout(LIMIT, consensus.fatal()).await.expect("it went on");
    assert!(fatal.contains("the platter is gone"), "{fatal}");
    for _ in 0..3 {
        assert!(matches!(consensus.propose("after").await, Err(RequestError::Stopped(_))));
        assert!(matches!(consensus.ensure_linearizable().await, Err(RequestError::Stopped(_))));
    }
    assert_eq!(*shown.lock().unwrap(), 1);
    assert!(consensus.shutdown().await);
}
