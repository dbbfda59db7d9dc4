//! The file under the database, which is left as a power cut would leave it.
//!
//! redb trusts a file that was closed in an orderly way: what changed in it since makes it panic, or is not noticed. A
//! file that was left it looks at as a whole, by the checksums of its pages, before it reads anything. So it is left,
//! always; what was synced is there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database, DatabaseError, StorageBackend};

/// A database and what keeps it from being closed, which goes first.
pub(super) struct Opened {
    pub(super) left: Left,
    pub(super) database: Database,
}

impl Opened {
    pub(super) fn on(backend: impl StorageBackend, builder: &Builder) -> Result<Self, DatabaseError> {
        let left = Left::default();
        let database = builder.create_with_backend(Platter(backend, Arc::clone(&left.0)))?;
        Ok(Self { left, database })
    }
}

/// Nothing is written any more once it is dropped.
#[derive(Debug, Default)]
pub(super) struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Its locks are not passed on: the directory has one of its own.
#[derive(Debug)]
struct Platter<B>(B, Arc<AtomicBool>);

impl<B> Platter<B> {
    fn check(&self) -> io::Result<()> {
        if self.1.load(Ordering::SeqCst) { Err(io::Error::other("the data directory was let go")) } else { Ok(()) }
    }
}

impl<B: StorageBackend> StorageBackend for Platter<B> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}
