//! The folder of all attempts. The folder belongs to one user, and to one runner at a time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::spool::{self, SpoolError};
use allclear_files::{self, Unsafe};

const LOCK_TRIES: u32 = 50;
const LOCK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum SpoolOpenError {
    #[error("{} is in use by another replica; stop that replica, or give this replica its own data_dir", .0.display())]
    InUse(PathBuf),
    #[error("the directory of running hooks cannot be used: {0}")]
    Unsafe(#[from] Unsafe),
    #[error("the directory of running hooks cannot be used: {0}; check data_dir and its owner")]
    Spool(#[from] SpoolError),
}

/// Creates the folder if missing, and closes the folder to other users. Returns the absolute path, because supervisors
/// have another working directory.
pub(super) fn make(spool: &Path) -> Result<PathBuf, SpoolOpenError> {
    Ok(allclear_files::own_folder(spool)?)
}

/// Takes the spool's lock. A process between fork and exec at the end of the previous replica may hold the lock a
/// little longer.
pub(super) fn lock(spool: &Path) -> Result<File, SpoolOpenError> {
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = spool::try_lock(&spool.join(".lock"))? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_EVERY);
    }
    Err(SpoolOpenError::InUse(spool.to_owned()))
}
