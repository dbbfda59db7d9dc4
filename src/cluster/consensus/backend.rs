//! The storage under redb, which never closes its file cleanly.
//!
//! redb trusts a file that was closed cleanly: a later change in the file causes a panic, or goes unnoticed. After an
//! unclean close, redb verifies all checksums of the file before the first read. All synced data is in the file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

/// Rejects writes once `left` is set. The locks of `file` are not passed on: the directory has its own lock.
#[derive(Debug)]
pub(super) struct NeverClosed<B> {
    pub(super) file: B,
    pub(super) left: Arc<AtomicBool>,
}

impl<B> NeverClosed<B> {
    fn check(&self) -> io::Result<()> {
        if self.left.load(Ordering::SeqCst) { Err(io::Error::other("the data directory is closed")) } else { Ok(()) }
    }
}

impl<B: StorageBackend> StorageBackend for NeverClosed<B> {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }
}
