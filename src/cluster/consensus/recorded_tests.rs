//! A disk that records all writes and syncs, a replica's life on the disk, and the data which a replica reads from such
//! a disk at its start.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, RwLock};

use bytes::Bytes;
use openraft::alias::LeaderIdOf;
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, RaftLogStorage as _, RaftStateMachine as _};
use openraft::vote::RaftLeaderId as _;
use openraft::{EntryPayload, RaftLogReader as _};
use redb::StorageBackend;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::commit_counter::CommitCounter;
use super::disk::Disk;
use super::failure::OpenError;
use super::log::LogStore;
use super::state_machine_store::StateMachineStore;
use super::store_tests::Counter;
use super::types::{
    LogId, Membership, Proposed, RaftEntry, RaftMember, RaftVote, SnapshotMeta, StoredMembership, Types,
};

/// Whether long tests run, as in the tests of processes.
pub(super) fn runs_long_tests() -> bool {
    ["CI", "ALLCLEAR_LONG"].iter().any(|name| std::env::var_os(name).is_some())
}

/// The bytes of a file; its clones are the same file.
#[derive(Clone, Debug)]
pub(super) struct Image(Arc<RwLock<Vec<u8>>>);

impl Image {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self(Arc::new(RwLock::new(bytes)))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.read().unwrap().clone()
    }
}

fn beyond() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "beyond the end of the file")
}

impl StorageBackend for Image {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.read().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (bytes, from) = (self.0.read().unwrap(), usize::try_from(offset).map_err(io::Error::other)?);
        let to = from.checked_add(out.len()).ok_or_else(beyond)?;
        out.copy_from_slice(bytes.get(from..to).ok_or_else(beyond)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        assert!(len < 1 << 30, "a damaged file made a database grow to {len} bytes");
        self.0.write().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut bytes, from) = (self.0.write().unwrap(), usize::try_from(offset).map_err(io::Error::other)?);
        let to = from.checked_add(data.len()).ok_or_else(beyond)?;
        bytes.get_mut(from..to).ok_or_else(beyond)?.copy_from_slice(data);
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Length(usize),
    Write(usize, Vec<u8>),
    Sync,
    /// An acknowledgement, and the number of writes counted by then.
    Acknowledged(u64),
}

#[derive(Debug)]
struct Recorder {
    image: Image,
    tape: Arc<Mutex<Vec<Step>>>,
}

impl Recorder {
    fn note(&self, step: Step) {
        self.tape.lock().unwrap().push(step);
    }
}

impl StorageBackend for Recorder {
    fn len(&self) -> io::Result<u64> {
        self.image.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.image.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note(Step::Length(usize::try_from(len).unwrap()));
        self.image.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(Step::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(Step::Write(usize::try_from(offset).unwrap(), data.to_vec()));
        self.image.write(offset, data)
    }
}

/// All data on which consensus relies.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Held {
    pub(super) log: BTreeMap<u64, RaftEntry>,
    pub(super) vote: Option<RaftVote>,
    purged: Option<LogId>,
    snapshot: Option<(SnapshotMeta, Bytes)>,
}

pub(super) fn read(runtime: &Runtime, disk: &Arc<Disk>) -> io::Result<Held> {
    runtime.block_on(async {
        let mut store = LogStore(Arc::clone(disk));
        let log = store.try_get_log_entries(..).await?;
        let snapshot = state(disk).get_current_snapshot().await?;
        let last = store.get_log_state().await?;
        let purged = last.last_purged_log_id;
        assert_eq!(last.last_log_id, log.last().map(|entry| entry.log_id).or(purged));
        Ok(Held {
            log: log.into_iter().map(|entry| (entry.log_id.index(), entry)).collect(),
            vote: store.read_vote().await?,
            purged,
            snapshot: snapshot.map(|snapshot| (snapshot.meta, snapshot.snapshot)),
        })
    })
}

/// Opens the disk as a replica does, and reads all data. `least`: the content of the commit counter's file.
pub(super) fn open(runtime: &Runtime, bytes: Vec<u8>, least: Option<u64>) -> Result<Held, String> {
    let tally = least.map(CommitCounter::told);
    let disk = Disk::on(Image::of(bytes), tally).map_err(|error: OpenError| error.to_string())?;
    read(runtime, &disk).map_err(|error| error.to_string())
}

fn state(disk: &Arc<Disk>) -> StateMachineStore {
    let state_machine: Box<dyn super::StateMachine> = Box::new(Counter::default());
    StateMachineStore::new(Arc::clone(disk), Arc::new(RwLock::new(state_machine)), watch::Sender::new(None))
}

fn id(term: u64, index: u64) -> LogId {
    LogId::new(term.into(), index)
}

fn members() -> Membership {
    let member = RaftMember { replica: "db-0".into(), address: "db-0:7420".into(), lineage: 0 };
    Membership::new(vec![[1].into()], BTreeMap::from([(1, member)])).unwrap()
}

fn entries(term: u64, indexes: std::ops::Range<u64>, size: usize) -> Vec<RaftEntry> {
    let entry = |index| {
        let bytes = format!("{term}.{index} ").repeat(size / 5 + 1);
        RaftEntry::new(id(term, index), EntryPayload::Normal(Proposed(bytes.into())))
    };
    indexes.map(entry).collect()
}

/// The recorded steps, and the data held after each deed of a replica's life, first of all an empty disk.
pub(super) struct Life {
    pub(super) steps: Vec<Step>,
    pub(super) held: Vec<Held>,
    /// The image when the process was killed, and the image after closing.
    pub(super) killed: Vec<u8>,
    pub(super) closed: Vec<u8>,
    pub(super) writes: u64,
}

enum Deed {
    Vote(u64),
    Append(Vec<RaftEntry>),
    Truncate(LogId),
    Snapshot(LogId),
    Purge(LogId),
}

fn metrics() -> Vec<Deed> {
    let first = RaftEntry::new(id(0, 0), EntryPayload::Membership(members()));
    vec![
        Deed::Vote(1),
        Deed::Append(vec![first, RaftEntry::new(id(1, 1), EntryPayload::Blank)]),
        Deed::Append(entries(1, 2..6, 40)),
        Deed::Vote(2),
        Deed::Truncate(id(1, 3)),
        Deed::Append(entries(2, 4..7, 300)),
        Deed::Append(entries(2, 7..8, 20_000)),
        Deed::Snapshot(id(2, 6)),
        Deed::Purge(id(2, 5)),
        Deed::Append(entries(2, 8..11, 40)),
        Deed::Vote(3),
        Deed::Append(entries(3, 11..12, 40)),
    ]
}

pub(super) fn live(runtime: &Runtime) -> Life {
    let (image, tape) = (Image::of(Vec::new()), Arc::<Mutex<Vec<Step>>>::default());
    let recorder = Recorder { image: image.clone(), tape: Arc::clone(&tape) };
    let disk = Disk::on(recorder, Some(CommitCounter::told(0))).unwrap();
    let acknowledged = || tape.lock().unwrap().push(Step::Acknowledged(disk.written()));
    let mut held = vec![read(runtime, &disk).unwrap()];
    acknowledged();
    for deed in metrics() {
        runtime.block_on(enact(&disk, deed));
        acknowledged();
        held.push(read(runtime, &disk).unwrap());
    }
    let writes = disk.written();
    let killed = image.bytes();
    let steps = tape.lock().unwrap().clone();
    drop(disk);
    let closed = image.bytes();
    Life { steps, held, killed, closed, writes }
}

async fn enact(disk: &Arc<Disk>, deed: Deed) {
    let mut store = LogStore(Arc::clone(disk));
    match deed {
        Deed::Vote(term) => {
            let vote = RaftVote { leader_id: LeaderIdOf::<Types>::new(term, 1), committed: term == 2 };
            store.save_vote(&vote).await.unwrap();
        }
        Deed::Append(entries) => {
            let last = entries.last().map(|entry| entry.log_id);
            store.append(entries, IOFlushed::noop()).await.unwrap();
            // Neither synced nor checked: a hint only.
            store.save_committed(last).await.unwrap();
            store.all_written().await.unwrap();
        }
        Deed::Truncate(last) => store.truncate_after(Some(last)).await.unwrap(),
        Deed::Snapshot(last) => {
            let last_membership = StoredMembership::new(Some(id(0, 0)), members());
            let meta = SnapshotMeta { last_log_id: Some(last), last_membership };
            state(disk).install_snapshot(&meta, Bytes::copy_from_slice(&6_u64.to_be_bytes())).await.unwrap();
        }
        Deed::Purge(upto) => store.purge(upto).await.unwrap(),
    }
}
