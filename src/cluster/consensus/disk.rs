//! The data directory: one redb file, one lock, and the identity that binds the directory to a cluster, a replica and a
//! node id.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prost::Message;
use redb::backends::FileBackend;
use redb::{Database, Durability, ReadTransaction, ReadableDatabase as _, StorageBackend, WriteTransaction};
use tokio::sync::watch;

use super::backend::NeverClosed;
use super::commit_counter::{self, CommitCounter};
use super::environment::Environment;
use super::failure::OpenError;
use super::tables::{IDENTITY, LOG, META, VOTE, put_committed};
use super::term_check::OwnTerm;
use super::unstable_log::UnstableLog;
use super::weights::Weights;
use super::{checked, integrity};
use allclear_wire::pb::allclear::raft::v1::{Identity, Vote};

/// The format, raised when an older program could no longer read the data of a newer program.
const FORMAT: u32 = 1;
const FILE: &str = "consensus.redb";
const LOCK: &str = "lock";
/// The size of redb's cache: repeated reads are of the end of the log; redb would take a gigabyte.
const CACHE_BYTES: usize = 512 << 10;

/// The open data directory, dropped after its last use; the fields are dropped in this order.
#[derive(Debug)]
pub(crate) struct Disk {
    database: Database,
    pub(crate) identity: Identity,
    pub(super) recent: UnstableLog,
    pub(super) term: OwnTerm,
    pub(super) weights: Weights,
    path: PathBuf,
    tally: CommitCounter,
    environment: Environment,
    /// See `NeverClosed`.
    left: Arc<AtomicBool>,
    lock: Option<File>,
    in_use: watch::Sender<()>,
}

impl Disk {
    /// Opens or creates this replica's directory. Without a name, opens the existing directory of any replica of this
    /// cluster. Blocks.
    pub(crate) fn open_by(
        environment: Environment,
        directory: &Path,
        cluster: &str,
        replica: Option<&str>,
    ) -> Result<Arc<Self>, OpenError> {
        let io = |source| OpenError::Io { path: directory.into(), source };
        let path = directory.join(FILE);
        if replica.is_some() {
            allclear_files::own_files(directory)?;
        } else if !path.try_exists().map_err(io)? {
            return Err(OpenError::NothingStored { path: directory.into() });
        }
        let lock = lock(directory)?;
        if let Some(replica) = replica
            && !path.try_exists().map_err(io)?
        {
            create(directory, &path, cluster, replica)?;
        }
        let tally = CommitCounter::open(directory).map_err(io)?;
        let file = File::options().read(true).write(true).open(&path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Err(OpenError::Damaged { path, why: "the file is empty".into() });
        }
        let backend = FileBackend::new(file).map_err(|error| unreadable(&path, error))?;
        let mut disk = Self::of(backend, tally, &path)?;
        (disk.environment, disk.lock) = (environment, Some(lock));
        disk.checked(cluster, replica)
    }

    /// The length of the file; `None` if no file is accessible.
    pub(crate) fn bytes(directory: &Path) -> Option<u64> {
        std::fs::metadata(directory.join(FILE)).ok().map(|file| file.len())
    }

    #[cfg(test)]
    pub(crate) fn open(directory: &Path, cluster: &str, replica: &str) -> Result<Arc<Self>, OpenError> {
        Self::open_by(Environment::default(), directory, cluster, Some(replica))
    }

    /// A database on the caller's backend, for tests of a failing disk.
    #[cfg(test)]
    pub(crate) fn on(backend: impl redb::StorageBackend, tally: Option<CommitCounter>) -> Result<Arc<Self>, OpenError> {
        let path = Path::new("a backend");
        let is_new = backend.len().is_ok_and(|len| len == 0);
        let disk = Self::of(backend, tally.unwrap_or_else(|| CommitCounter::told(0)), path)?;
        if is_new {
            write_identity(&disk.database, "orders", "db-0").map_err(|error| unreadable(path, error))?;
        }
        disk.checked("orders", Some("db-0"))
    }

    fn of(file: impl StorageBackend, tally: CommitCounter, path: &Path) -> Result<Self, OpenError> {
        let left = Arc::new(AtomicBool::new(false));
        let platter = NeverClosed { file, left: Arc::clone(&left) };
        let database = builder().create_with_backend(platter).map_err(|error| unreadable(path, error))?;
        let (identity, recent, environment) = (Identity::default(), UnstableLog::default(), Environment::default());
        let (term, weights) = (OwnTerm::default(), Weights::default());
        let (path, in_use) = (path.into(), watch::Sender::new(()));
        Ok(Self { database, identity, recent, term, weights, path, tally, environment, left, lock: None, in_use })
    }

    /// Checks that the directory belongs to this replica, or to any replica without a name, and is intact.
    fn checked(mut self, cluster: &str, replica: Option<&str>) -> Result<Arc<Self>, OpenError> {
        let path = self.path.clone();
        let Some(identity) = self.message::<Identity>(IDENTITY)? else {
            return Err(OpenError::Damaged { path, why: "the file names no owner".into() });
        };
        if identity.format > FORMAT {
            return Err(OpenError::NewerFormat { path, found: identity.format, known: FORMAT });
        }
        let of_another = |what, found: &str, expected: &str| {
            let path = path.clone();
            Err(OpenError::OfAnother { path, what, found: found.into(), expected: expected.into() })
        };
        if identity.cluster != cluster {
            return of_another("cluster", &identity.cluster, cluster);
        }
        if let Some(expected) = replica.filter(|replica| identity.replica != *replica) {
            return of_another("replica", &identity.replica, expected);
        }
        let written = self.read(|transaction| integrity::inspect(transaction, self.tally.least()))?;
        self.note(written)?;
        self.weigh()?;
        self.identity = identity;
        self.term.stored(self.message::<Vote>(VOTE)?.map_or(0, |vote| vote.term));
        Ok(Arc::new(self))
    }

    fn note(&self, written: u64) -> Result<(), OpenError> {
        self.tally.note(written).map_err(|source| OpenError::Io { path: self.path.clone(), source })
    }

    /// For tests: the number of counted writes.
    #[cfg(test)]
    pub(super) fn written(&self) -> u64 {
        self.tally.least()
    }

    /// A channel that closes when the directory is released.
    pub(crate) fn closed(&self) -> watch::Receiver<()> {
        self.in_use.subscribe()
    }

    /// Runs work aside, so that a slow disk never blocks other tasks.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, OpenError> + Send + 'static,
    ) -> io::Result<T> {
        let disk = Arc::clone(self);
        self.environment.result_of(move || work(&disk)).await?.map_err(io::Error::other)
    }

    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, OpenError> {
        let begun = self.database.begin_read().map_err(redb::Error::from);
        begun.and_then(|transaction| work(&transaction)).map_err(|error| unreadable(&self.path, error))
    }

    /// Runs one transaction, synced to the disk on return.
    pub(super) fn write(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), OpenError> {
        let written = || {
            let mut transaction = self.database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            let count = commit_counter::count(&transaction)?;
            work(&transaction)?;
            transaction.commit()?;
            Ok::<_, redb::Error>(count)
        };
        self.note(written().map_err(|error| unreadable(&self.path, error))?)
    }

    pub(super) fn message<M: Message + Default>(&self, key: &str) -> Result<Option<M>, OpenError> {
        self.read(|transaction| checked::get(&transaction.open_table(META)?, key))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Without this position the next start has more to do.
        if let Some(committed) = self.recent.committed_hint() {
            let _ = self.write(|transaction| put_committed(transaction, &committed));
        }
        self.left.store(true, Ordering::SeqCst);
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Locks the directory as long as the directory is open, also during the creation of the file.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK);
    let io = |source| OpenError::Io { path: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: directory.into() }),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Creates the file under another name: a power cut during the creation leaves a redb file that never opens again.
fn create(directory: &Path, path: &Path, cluster: &str, replica: &str) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: directory.into(), source };
    let unfinished = path.with_extension("new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        Ok(()) | Err(_) => {}
    }
    let database = builder().create(&unfinished).map_err(|error| unreadable(&unfinished, error))?;
    write_identity(&database, cluster, replica).map_err(|error| unreadable(&unfinished, error))?;
    drop(database);
    File::open(&unfinished).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(&unfinished, path).map_err(io)?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)
}

fn write_identity(database: &Database, cluster: &str, replica: &str) -> Result<(), redb::Error> {
    let identity = Identity {
        format: FORMAT,
        cluster: cluster.into(),
        replica: replica.into(),
        node: random_node(cluster, replica),
    };
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.open_table(LOG)?;
    checked::put(&mut transaction.open_table(META)?, IDENTITY, &identity)?;
    Ok(transaction.commit()?)
}

/// A random node id. `RandomState` is seeded by the operating system's randomness; zero stays free for "no node".
pub(super) fn random_node(cluster: &str, replica: &str) -> u64 {
    RandomState::new().hash_one((cluster, replica)).max(1)
}

fn unreadable(path: &Path, error: impl Into<redb::Error>) -> OpenError {
    match error.into() {
        redb::Error::Io(source)
            if !matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            OpenError::Io { path: path.into(), source }
        }
        other => OpenError::Damaged { path: path.into(), why: other.to_string() },
    }
}

#[cfg(test)]
mod tests;
