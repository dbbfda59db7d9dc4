//! Whether a spool knows every attempt ever started on its machine. A new spool does not: the disk of a previous run
//! may be lost. The spool stays marked as new until the log says that no attempt is in doubt.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tracing::warn;

use super::spool::{IoContext, SpoolError, sync};

pub(super) const NEW: &str = ".new";

pub struct Memory {
    mark: PathBuf,
}

impl Memory {
    /// A spool without its lock was never opened. The mark is on the disk before the lock is made.
    pub(super) fn of(spool: &Path) -> Result<Self, SpoolError> {
        let mark = spool.join(NEW);
        if !spool.join(".lock").exists() {
            File::create(&mark).and_then(|mark| mark.sync_all()).doing("write", &mark)?;
            sync(spool)?;
        }
        Ok(Self { mark })
    }

    /// True if an unknown attempt may have been started by a previous run of this machine whose disk is lost. Also true
    /// if the mark cannot be checked.
    pub fn is_new(&self) -> bool {
        self.mark.try_exists().unwrap_or(true)
    }

    /// From here on, an unknown attempt was never started. A mark that cannot be removed makes the next run check
    /// again.
    ///
    /// Removes a file, once per disk and shortly after the start, so the call blocks on the disk. No background work is
    /// started, so a simulated run is reproducible.
    pub fn complete(&self) {
        if let Err(error) = fs::remove_file(&self.mark) {
            warn!(%error, mark = %self.mark.display(), "mark of a new disk not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_is_new_until_somebody_says_that_nothing_is_in_doubt() {
        let spool = tempfile::tempdir().unwrap();
        assert!(Memory::of(spool.path()).unwrap().is_new());
        File::create(spool.path().join(".lock")).unwrap();
        let memory = Memory::of(spool.path()).unwrap();
        assert!(memory.is_new(), "the life before this one did not say so");
        memory.complete();
        assert!(!memory.is_new() && !Memory::of(spool.path()).unwrap().is_new());
    }

    #[test]
    fn one_that_was_opened_before_there_were_marks_is_not_new() {
        let spool = tempfile::tempdir().unwrap();
        File::create(spool.path().join(".lock")).unwrap();
        assert!(!Memory::of(spool.path()).unwrap().is_new());
    }
}
