//! The data directory: one redb file, one lock, and the identity that binds it to a cluster, a replica and a node id.

use std::fs::{File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::Path;
use std::sync::Arc;

use prost::Message as _;
use redb::{Database, Durability, ReadableDatabase as _, TableDefinition, WriteTransaction};
use tokio::sync::watch;

use super::failure::OpenError;
use super::means::Means;
use crate::wire::pb::allclear::raft::v1::Identity;

/// Raised when an older program could no longer read what a newer one writes.
const FORMAT: u32 = 1;
const FILE: &str = "consensus.redb";
const LOCK: &str = "lock";
/// The working set is small; redb would take a gigabyte.
const CACHE_BYTES: usize = 16 << 20;

pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
pub(super) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const IDENTITY: &str = "identity";

/// Dropped when nothing uses the directory any more; its fields are let go in this order.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(super) database: Database,
    pub(crate) identity: Identity,
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
        let database = builder().open(&path).map_err(|error| unreadable(&path, error))?;
        Self::with(means, database, Some(lock), &path, cluster, replica)
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
        let database = builder().open(&path).map_err(|error| unreadable(&path, error))?;
        let replica = identity(&database, &path)?.replica;
        Self::with(Means::default(), database, Some(lock), &path, cluster, &replica)
    }

    /// A database on a backend of the caller's: to see what a failing disk does.
    #[cfg(test)]
    pub(crate) fn on(backend: impl redb::StorageBackend, cluster: &str, replica: &str) -> Result<Arc<Self>, OpenError> {
        let path = Path::new("a backend").to_path_buf();
        let database = builder().create_with_backend(backend).map_err(|error| unreadable(&path, error))?;
        stamp(&database, cluster, replica).map_err(|error| unreadable(&path, error))?;
        Self::with(Means::default(), database, None, &path, cluster, replica)
    }

    fn with(
        means: Means,
        database: Database,
        lock: Option<File>,
        path: &Path,
        cluster: &str,
        replica: &str,
    ) -> Result<Arc<Self>, OpenError> {
        let identity = identity(&database, path)?;
        let path = path.to_path_buf();
        if identity.format > FORMAT {
            return Err(OpenError::NewerFormat { path, found: identity.format, known: FORMAT });
        }
        if identity.cluster != cluster {
            return Err(OpenError::ForeignCluster { path, found: identity.cluster, expected: cluster.into() });
        }
        if identity.replica != replica {
            return Err(OpenError::OtherReplica { path, found: identity.replica, expected: replica.into() });
        }
        Ok(Arc::new(Self { database, identity, means, _lock: lock, in_use: watch::Sender::new(()) }))
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
        self.means.result_of(move || work(&disk)).await?.map_err(io::Error::other)
    }

    /// One transaction, on the platter when this returns.
    pub(super) fn write(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        self.write_with(Durability::Immediate, work)
    }

    pub(super) fn write_with(
        &self,
        durability: Durability,
        work: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        work(&transaction)?;
        Ok(transaction.commit()?)
    }

    pub(super) fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, redb::Error> {
        let table = self.database.begin_read()?.open_table(META)?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
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
    transaction.open_table(META)?.insert(IDENTITY, identity.encode_to_vec().as_slice())?;
    Ok(transaction.commit()?)
}

fn identity(database: &Database, path: &Path) -> Result<Identity, OpenError> {
    let read = || -> Result<Option<Vec<u8>>, redb::Error> {
        let table = database.begin_read()?.open_table(META)?;
        Ok(table.get(IDENTITY)?.map(|value| value.value().to_vec()))
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
        redb::Error::Io(source) if source.kind() != io::ErrorKind::InvalidData => {
            OpenError::Io { path: path.into(), source }
        }
        other => OpenError::Damaged { path: path.into(), why: other.to_string() },
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
