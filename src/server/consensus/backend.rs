//! The file under the database, which is left as a power cut would leave it.
//!
//! redb trusts a file that was closed in an orderly way: what changed in it since makes it panic, or is not noticed. A
//! file that was left it looks at as a whole, by the checksums of its pages, before it reads anything. So it is left,
//! always; what was synced is there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

/// Nothing is written any more once it has been left. Its locks are not passed on: the directory has one of its own.
#[derive(Debug)]
pub(super) struct NeverClosed<B> {
    pub(super) file: B,
    pub(super) left: Arc<AtomicBool>,
}

impl<B> NeverClosed<B> {
    fn check(&self) -> io::Result<()> {
        if self.left.load(Ordering::SeqCst) { Err(io::Error::other("the data directory was let go")) } else { Ok(()) }
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
