//! The folder of all attempts: this user's alone, and one runner's at a time.

use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;

use super::spool::{self, Doing, SpoolError};

const LOCK_TRIES: u32 = 50;
const LOCK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is in use by another replica; stop it, or give this one its own data_dir", .0.display())]
    InUse(PathBuf),
    #[error(
        "{} belongs to uid {owner}, who could say how hooks ended and have files written elsewhere: \
         give it to uid {own} with all that is in it, or give this replica its own data_dir", path.display()
    )]
    OfAnother { path: PathBuf, owner: u32, own: u32 },
    #[error("the folder of running hooks cannot be used: {0}; check data_dir and its owner")]
    Spool(#[from] SpoolError),
}

/// Makes it where it is missing, and closes it to others. By its whole path, since supervisors run elsewhere.
pub(super) fn make(spool: &Path) -> Result<PathBuf, OpenError> {
    DirBuilder::new().recursive(true).mode(0o700).create(spool).doing("make", spool)?;
    let path = spool.canonicalize().doing("find", spool)?;
    let found = fs::metadata(&path).doing("look at", &path)?;
    let (owner, own) = (found.uid(), geteuid().as_raw());
    if owner != own {
        return Err(OpenError::OfAnother { path, owner, own });
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(&path, Permissions::from_mode(0o700)).doing("close", &path)?;
    }
    Ok(path)
}

/// A process that was being started when the last replica ended may hold its lock for a moment longer.
pub(super) fn lock(spool: &Path) -> Result<File, OpenError> {
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = spool::try_lock(&spool.join(".lock"))? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_EVERY);
    }
    Err(OpenError::InUse(spool.to_owned()))
}
