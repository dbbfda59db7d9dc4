//! The data directory: one redb file, one lock, and the identity that binds it to a cluster, a replica and a node id.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message as _;
use redb::backends::FileBackend;
use redb::{Database, Durability, ReadableDatabase as _, TableDefinition, WriteTransaction};
use tokio::sync::watch;

use super::failure::OpenError;
use super::log::put_committed;
use super::means::Means;
use super::platter::{Left, Opened};
use super::recent::Recent;
use super::tally::{self, Tally};
use super::{inspection, sealed};
use crate::wire::pb::allclear::raft::v1::Identity;

/// Raised when an older program could no longer read what a newer one writes.
const FORMAT: u32 = 1;
const FILE: &str = "consensus.redb";
const LOCK: &str = "lock";
/// What is read again and again is the end of the log; redb would take a gigabyte.
const CACHE_BYTES: usize = 512 << 10;

pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
pub(super) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const IDENTITY: &str = "identity";

/// Dropped when nothing uses the directory any more; its fields are let go in this order.
#[derive(Debug)]
pub(crate) struct Disk {
    _left: Left,
    pub(super) database: Database,
    pub(crate) identity: Identity,
    pub(super) recent: Recent,
    path: PathBuf,
    /// Not where a test keeps the database elsewhere.
    tally: Option<Tally>,
    means: Means,
    _lock: Option<File>,
    in_use: watch::Sender<()>,
}

impl Disk {
    /// Opens the directory, or makes it. Blocks.
    pub(crate) fn open_by(
        means: Means,
        directory: &Path,
        cluster: &str,
        replica: &str,
    ) -> Result<Arc<Self>, OpenError> {
        let io = |source| OpenError::Io { path: directory.into(), source };
        std::fs::create_dir_all(directory).map_err(io)?;
        let lock = lock(directory)?;
        let path = directory.join(FILE);
        if !path.try_exists().map_err(io)? {
            create(directory, &path, cluster, replica)?;
        }
        Self::locked(means, lock, directory, &path, cluster, Some(replica))
    }

    /// How long the file is; nothing where there is none that can be looked at.
    pub(crate) fn bytes(directory: &Path) -> Option<u64> {
        std::fs::metadata(directory.join(FILE)).ok().map(|file| file.len())
    }

    #[cfg(test)]
    pub(crate) fn open(directory: &Path, cluster: &str, replica: &str) -> Result<Arc<Self>, OpenError> {
        Self::open_by(Means::default(), directory, cluster, replica)
    }

    /// Opens a directory that a replica of this cluster left behind, whichever it is. Blocks.
    pub(crate) fn open_existing(directory: &Path, cluster: &str) -> Result<Arc<Self>, OpenError> {
        let path = directory.join(FILE);
        if !path.try_exists().map_err(|source| OpenError::Io { path: directory.into(), source })? {
            return Err(OpenError::NothingStored { path: directory.into() });
        }
        let lock = lock(directory)?;
        Self::locked(Means::default(), lock, directory, &path, cluster, None)
    }

    fn locked(
        means: Means,
        lock: File,
        directory: &Path,
        path: &Path,
        cluster: &str,
        replica: Option<&str>,
    ) -> Result<Arc<Self>, OpenError> {
        let io = |source| OpenError::Io { path: directory.into(), source };
        let tally = Tally::open(directory).map_err(io)?;
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Err(OpenError::Damaged { path: path.into(), why: "it is empty".into() });
        }
        let backend = FileBackend::new(file).map_err(|error| unreadable(path, error))?;
        let opened = Opened::on(backend, &builder()).map_err(|error| unreadable(path, error))?;
        Self::of(means, opened, Some(tally), Some(lock), path, cluster, replica)
    }

    /// A database on a backend of the caller's: to see what a failing disk does.
    #[cfg(test)]
    pub(crate) fn on(backend: impl redb::StorageBackend, tally: Option<Tally>) -> Result<Arc<Self>, OpenError> {
        let path = Path::new("a backend");
        let is_new = backend.len().is_ok_and(|len| len == 0);
        let opened = Opened::on(backend, &builder()).map_err(|error| unreadable(path, error))?;
        if is_new {
            stamp(&opened.database, "orders", "db-0").map_err(|error| unreadable(path, error))?;
        }
        Self::of(Means::default(), opened, tally, None, path, "orders", Some("db-0"))
    }

    fn of(
        means: Means,
        opened: Opened,
        tally: Option<Tally>,
        lock: Option<File>,
        path: &Path,
        cluster: &str,
        replica: Option<&str>,
    ) -> Result<Arc<Self>, OpenError> {
        let identity = identity(&opened.database, path)?;
        let path = path.to_path_buf();
        if identity.format > FORMAT {
            return Err(OpenError::NewerFormat { path, found: identity.format, known: FORMAT });
        }
        if identity.cluster != cluster {
            return Err(OpenError::ForeignCluster { path, found: identity.cluster, expected: cluster.into() });
        }
        if let Some(expected) = replica.filter(|replica| identity.replica != *replica) {
            return Err(OpenError::OtherReplica { path, found: identity.replica, expected: expected.into() });
        }
        let written =
            inspection::inspect(&opened.database, tally.as_ref()).map_err(|error| unreadable(&path, error))?;
        if let Some(Err(source)) = tally.as_ref().map(|tally| tally.note(written)) {
            return Err(OpenError::Io { path, source });
        }
        let (in_use, Opened { left, database }) = (watch::Sender::new(()), opened);
        let recent = Recent::default();
        Ok(Arc::new(Self { _left: left, database, identity, recent, path, tally, means, _lock: lock, in_use }))
    }

    /// For tests: how many writes were counted.
    #[cfg(test)]
    pub(super) fn written(&self) -> u64 {
        self.tally.as_ref().map_or(0, Tally::least)
    }

    /// Ends when the directory has been let go: then its channel closes.
    pub(crate) fn let_go(&self) -> watch::Receiver<()> {
        self.in_use.subscribe()
    }

    /// Runs aside, so that a slow disk never holds up the others.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, redb::Error> + Send + 'static,
    ) -> io::Result<T> {
        let disk = Arc::clone(self);
        let done = self.means.result_of(move || work(&disk)).await?;
        done.map_err(|error| io::Error::other(unreadable(&self.path, error)))
    }

    /// One transaction, on the platter when this returns.
    pub(super) fn write(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        let count = tally::count(&transaction)?;
        work(&transaction)?;
        transaction.commit()?;
        Ok(self.tally.as_ref().map_or(Ok(()), |tally| tally.note(count))?)
    }

    pub(super) fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, redb::Error> {
        let table = self.database.begin_read()?.open_table(META)?;
        table.get(key)?.map(|value| Ok(sealed::value(key, value.value())?.to_vec())).transpose()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Without it the next start has more to do.
        if let Some(committed) = self.recent.advice() {
            let _ = self.write(|transaction| put_committed(transaction, committed));
        }
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Held as long as the directory is open, also while the file is being made.
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

/// A power cut during the creation of a redb file leaves one that never opens again, so it is made under another name.
fn create(directory: &Path, path: &Path, cluster: &str, replica: &str) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: directory.into(), source };
    let unfinished = path.with_extension("new");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        Ok(()) | Err(_) => {}
    }
    let database = builder().create(&unfinished).map_err(|error| unreadable(&unfinished, error))?;
    stamp(&database, cluster, replica).map_err(|error| unreadable(&unfinished, error))?;
    drop(database);
    File::open(&unfinished).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(&unfinished, path).map_err(io)?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io)
}

fn stamp(database: &Database, cluster: &str, replica: &str) -> Result<(), redb::Error> {
    let identity = Identity {
        format: FORMAT,
        cluster: cluster.into(),
        replica: replica.into(),
        node: random_node(cluster, replica),
    };
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.open_table(LOG)?;
    sealed::put(&mut transaction.open_table(META)?, IDENTITY, identity.encode_to_vec())?;
    Ok(transaction.commit()?)
}

fn identity(database: &Database, path: &Path) -> Result<Identity, OpenError> {
    let read = || -> Result<Option<Vec<u8>>, redb::Error> {
        let table = database.begin_read()?.open_table(META)?;
        table.get(IDENTITY)?.map(|value| Ok(sealed::value(IDENTITY, value.value())?.to_vec())).transpose()
    };
    let damaged = |why: String| OpenError::Damaged { path: path.into(), why };
    let bytes = read().map_err(|error| unreadable(path, error))?;
    let bytes = bytes.ok_or_else(|| damaged("it names no owner".into()))?;
    Identity::decode(bytes.as_slice()).map_err(|error| damaged(format!("its owner is not readable ({error})")))
}

/// `RandomState` is seeded by the operating system's randomness; zero stays free for "nobody".
pub(super) fn random_node(cluster: &str, replica: &str) -> u64 {
    RandomState::new().hash_one((cluster, replica)).max(1)
}

fn unreadable(path: &Path, error: impl Into<redb::Error>) -> OpenError {
    match error.into() {
        redb::Error::DatabaseAlreadyOpen => OpenError::InUse { path: path.into() },
        redb::Error::Io(source)
            if !matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            OpenError::Io { path: path.into(), source }
        }
        other => OpenError::Damaged { path: path.into(), why: other.to_string() },
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
