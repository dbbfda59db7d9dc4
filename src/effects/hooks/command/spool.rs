//! The folder of one attempt: its name, and files that stay whole when a process crashes; the request also survives a
//! power cut. A reader does not trust the files.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use super::attempt_files::{RecordFile, RunRecord, StartRecord};
use super::name::encode;
use super::output::bounded;
use allclear_wire::checksum::{seal_text, unseal_text};

const MAX_FILE: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {source}", path.display())]
pub struct SpoolError {
    pub(super) doing: &'static str,
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl SpoolError {
    pub(super) fn is_there_already(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

pub(super) trait IoContext<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, SpoolError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, SpoolError> {
        self.map_err(|source| SpoolError { doing, path: path.to_owned(), source })
    }
}

#[derive(Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn of(spool: &Path, attempt: &str) -> Self {
        Self(spool.join(encode(attempt)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder and takes its lock before anything is run. Fails if the folder exists.
    pub(super) fn create(&self, request: &RunRecord) -> Result<File, SpoolError> {
        DirBuilder::new().mode(0o700).create(&self.0).doing("make", &self.0)?;
        let filled = self.prepare(request);
        if filled.is_err() {
            // A folder that cannot be removed now is found empty, and removed, at the next start.
            let _ = self.discard();
        }
        filled
    }

    /// On return the request, its name and the folder are on the disk. After an earlier power cut the hook was not
    /// started; but unless the request is completely missing, the attempt counts as possibly started.
    fn prepare(&self, request: &RunRecord) -> Result<File, SpoolError> {
        let lock = self.lock()?.ok_or(io::ErrorKind::WouldBlock.into()).doing("lock", &self.0)?;
        let (written, spool) = (self.write(request)?, self.0.parent().unwrap_or(&self.0));
        sync_together(&[(&self.0.join(RunRecord::FILE), written), (&self.0, open(&self.0)?), (spool, open(spool)?)])?;
        Ok(lock)
    }

    /// `None` while another process holds the lock. The kernel releases the lock when its last holder ends, for any
    /// reason.
    pub(super) fn lock(&self) -> Result<Option<File>, SpoolError> {
        try_lock(&self.0.join("lock"))
    }

    /// Fails if a mark exists: a hook is started once, whatever fails.
    pub(super) fn leave_mark(&self, mark: &StartRecord) -> Result<(), SpoolError> {
        let (unfinished, _) = self.fill(mark)?;
        let path = self.0.join(StartRecord::FILE);
        let linked = fs::hard_link(&unfinished, &path).doing("write", &path);
        // A leftover unfinished file is harmless.
        let _ = fs::remove_file(&unfinished);
        linked
    }

    /// The file for the supervisor's own errors.
    pub(super) fn complaints(&self) -> io::Result<File> {
        File::create(self.0.join("supervisor"))
    }

    pub(super) fn complaint(&self) -> String {
        // An unreadable complaint is ignored.
        let said = read(&self.0.join("supervisor")).unwrap_or_default();
        bounded(String::from_utf8_lossy(&said).trim())
    }

    /// Renames the folder first, so the attempt is gone at once, even if the removal of its files fails.
    pub(super) fn discard(&self) -> Result<(), SpoolError> {
        let (Some(spool), Some(name)) = (self.0.parent(), self.0.file_name()) else { return Ok(()) };
        let gone = spool.join(format!("{GONE}{}", name.to_string_lossy()));
        if gone.exists() {
            fs::remove_dir_all(&gone).doing("remove", &gone)?;
        }
        fs::rename(&self.0, &gone).doing("remove", &self.0)?;
        fs::remove_dir_all(&gone).doing("remove", &gone)
    }

    /// Writes the record atomically; a crash of this process leaves a whole file or none, and a power cut may undo the
    /// write. That is correct for an outcome: a power cut ends the hook's processes too, so the outcome is unknown, and
    /// an event does not wait for the disk.
    pub(super) fn write<R: RecordFile>(&self, content: &R) -> Result<File, SpoolError> {
        let (unfinished, written) = self.fill(content)?;
        let path = self.0.join(R::FILE);
        fs::rename(&unfinished, &path).doing("write", &path)?;
        Ok(written)
    }

    fn fill<R: RecordFile>(&self, content: &R) -> Result<(PathBuf, File), SpoolError> {
        let path = self.0.join(format!("{}.unfinished", R::FILE));
        let filled = (|| {
            let bytes = seal_text(R::FILE.as_bytes(), serde_json::to_vec(content)?);
            if bytes.len() as u64 > MAX_FILE {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 1 MiB"));
            }
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            file.write_all(&bytes)?;
            Ok(file)
        })();
        let file = filled.doing("write", &path)?;
        Ok((path, file))
    }

    pub(super) fn read<R: RecordFile>(&self) -> Result<Option<R>, SpoolError> {
        let path = self.0.join(R::FILE);
        let bytes = match read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).doing("read", &path),
        };
        let text =
            unseal_text(R::FILE.as_bytes(), &bytes).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why));
        let content = text.and_then(|text| Ok(serde_json::from_slice(text)?));
        content.map(Some).doing("read", &path)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Checked before the open: opening a pipe would wait for a writer.
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() || found.len() > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file of at most 1 MiB"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) const GONE: &str = ".gone-";

pub(super) fn try_lock(path: &Path) -> Result<Option<File>, SpoolError> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = open.doing("open", path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).doing("lock", path),
    }
}

fn open(path: &Path) -> Result<File, SpoolError> {
    File::open(path).doing("open", path)
}

/// Syncs the names in the folder.
pub(super) fn sync(folder: &Path) -> Result<(), SpoolError> {
    open(folder)?.sync_all().doing("write", folder)
}

/// Syncs in parallel, so the delay of a slow disk occurs only once.
fn sync_together(opened: &[(&Path, File); 3]) -> Result<(), SpoolError> {
    thread::scope(|scope| {
        let aside = opened.each_ref().map(|(_, file)| thread::Builder::new().spawn_scoped(scope, || file.sync_all()));
        let synced = opened.iter().zip(aside).map(|((path, file), aside)| {
            let synced = match aside.map(ScopedJoinHandle::join) {
                Ok(Ok(synced)) => synced,
                Ok(Err(panic)) => resume_unwind(panic),
                // No further thread can be started.
                Err(_) => file.sync_all(),
            };
            synced.doing("write", path)
        });
        synced.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::HookOutcome;
    use crate::hooks::command::attempt_files::OutcomeRecord;
    use crate::hooks::command::process::ProcessId;

    #[test]
    fn what_cannot_be_synced_is_told_whichever_of_three_it_is() {
        let spool = tempfile::tempdir().unwrap();
        // `/dev/null` cannot be synced.
        let other = Path::new("/dev/null");
        let opened = |path| (path, open(path).unwrap());
        sync_together(&[spool.path(); 3].map(opened)).unwrap();
        for at in 0..3 {
            let mut paths = [spool.path(); 3];
            paths[at] = other;
            assert_eq!(sync_together(&paths.map(opened)).unwrap_err().path, other);
        }
    }

    #[test]
    fn a_mark_is_left_once() {
        let spool = tempfile::tempdir().unwrap();
        let folder = Folder::at(spool.path());
        let mark = StartRecord { place: "here".into(), supervisor: ProcessId { pid: 7, started: 9 } };
        folder.leave_mark(&mark).unwrap();
        assert!(folder.leave_mark(&mark).is_err());
    }

    #[test]
    fn an_outcome_that_is_cut_off_or_changed_by_a_bit_is_refused_or_read_as_it_was() {
        let spool = tempfile::tempdir().unwrap();
        let folder = Folder::at(spool.path());
        let ended = HookOutcome::Failed("exit code 3".into());
        folder.write(&OutcomeRecord { ended, at_ms: 7, progress: None }).unwrap();
        let path = spool.path().join(OutcomeRecord::FILE);
        let whole = fs::read(&path).unwrap();
        let cut_off = (0..whole.len()).map(|end| whole[..end].to_vec());
        let flipped = (0..whole.len() * 8).map(|bit| {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped
        });
        for (at, bytes) in cut_off.chain(flipped).enumerate() {
            fs::write(&path, &bytes).unwrap();
            match folder.read::<OutcomeRecord>() {
                Ok(read) => assert_eq!(read.unwrap().ended, HookOutcome::Failed("exit code 3".into()), "change {at}"),
                Err(error) => assert!(error.to_string().starts_with("cannot read "), "change {at}: {error}"),
            }
        }
    }

    #[test]
    fn what_was_written_without_a_seal_is_read() {
        let spool = tempfile::tempdir().unwrap();
        fs::write(spool.path().join(OutcomeRecord::FILE), r#"{"ended":{"outcome":"done"},"at_ms":7}"#).unwrap();
        assert_eq!(Folder::at(spool.path()).read::<OutcomeRecord>().unwrap().unwrap().ended, HookOutcome::Done);
    }
}
