//! A journal on disk: lines are appended and synced, and from time to time a new file replaces the old file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::journal::{Journal, JournalLine};

/// A file with more lines than this is rewritten with only the remembered attempts.
const LINES: usize = 8000;

/// Why a journal could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot use the journal {}: {error}", path.display())]
    Disk { path: PathBuf, error: io::Error },
    #[error("the journal {} is in use by another process; give each workload its own", path.display())]
    InUse { path: PathBuf },
    #[error(
        "the journal {} cannot be read: {why}; it tells what was done already, so it is not taken for an empty one: \
         move it away if hooks may be run again",
        path.display()
    )]
    Damaged { path: PathBuf, why: String },
}

/// Where the lines of a journal go: to a file, or nowhere.
#[derive(Default)]
pub(super) struct JournalFile(Option<OpenFile>);

struct OpenFile {
    path: PathBuf,
    file: File,
    lines: usize,
    /// The last write failed, and may have left part of a line.
    is_torn: bool,
    /// The lock of the journal, held until the process ends.
    _lock: File,
}

impl JournalFile {
    pub(super) fn open(path: &Path) -> Result<(Self, Journal), JournalError> {
        let failed = |error| JournalError::Disk { path: path.into(), error };
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = File::create(beside(path, "lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: path.into() },
            TryLockError::Error(error) => failed(error),
        })?;
        let damaged = |why| JournalError::Damaged { path: path.into(), why };
        let journal = match fs::read(path) {
            Ok(bytes) => parse(&bytes).and_then(Journal::read).map_err(damaged)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Journal::default(),
            Err(error) => return Err(failed(error)),
        };
        let (file, lines) = replace(path, &journal.lines()).map_err(failed)?;
        Ok((Self(Some(OpenFile { path: path.into(), file, lines, is_torn: false, _lock: lock })), journal))
    }

    /// Appends lines; returns when the lines are on disk. `whole` returns the complete journal, for a rewrite of the
    /// file.
    pub(super) fn append(&mut self, lines: &[JournalLine], whole: impl FnOnce() -> Vec<JournalLine>) -> io::Result<()> {
        let Some(disk) = &mut self.0 else { return Ok(()) };
        if disk.is_torn || disk.lines + lines.len() > LINES {
            let mut whole = whole();
            whole.extend_from_slice(lines);
            (disk.file, disk.lines) = replace(&disk.path, &whole)?;
            disk.is_torn = false;
            return Ok(());
        }
        disk.is_torn = true;
        disk.file.write_all(&text(lines)?)?;
        disk.file.sync_data()?;
        disk.is_torn = false;
        disk.lines += lines.len();
        Ok(())
    }
}

/// After a crash either the complete old file or the complete new file exists.
fn replace(path: &Path, lines: &[JournalLine]) -> io::Result<(File, usize)> {
    let next = beside(path, "next");
    let mut file = File::create(&next)?;
    file.write_all(&text(lines)?)?;
    file.sync_all()?;
    fs::rename(&next, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()?;
    Ok((OpenOptions::new().append(true).open(path)?, lines.len()))
}

fn text(lines: &[JournalLine]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Text after the last line's end was an unfinished write of a killed process: no action had followed from this line
/// yet.
fn parse(bytes: &[u8]) -> Result<Vec<JournalLine>, String> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
    let whole = str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
    let lines: Vec<JournalLine> = whole
        .lines()
        .enumerate()
        .map(|(at, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1)))
        .collect::<Result<_, _>>()?;
    match lines.first() {
        Some(JournalLine::Journal { .. }) => Ok(lines),
        _ => Err("it does not begin as a journal does".into()),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(attempt: &str) -> JournalLine {
        JournalLine::Acknowledged { attempt: attempt.into() }
    }

    #[test]
    fn a_directory_is_no_journal_and_gets_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        fs::create_dir(&path).unwrap();
        let Err(JournalError::Disk { error, .. }) = JournalFile::open(&path) else { panic!("a directory") };
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        assert!(!beside(&path, "lock").exists());
    }

    fn whole() -> Vec<JournalLine> {
        vec![JournalLine::Journal { version: 1 }]
    }

    #[test]
    fn after_a_write_that_failed_the_file_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut lines, _) = JournalFile::open(&path).unwrap();
        lines.0.as_mut().unwrap().file = File::open(&path).unwrap();
        assert!(lines.append(&[line("a1")], whole).is_err(), "it is open for reading alone");
        fs::write(&path, "torn").unwrap();
        lines.append(&[line("a2")], whole).unwrap();
        lines.append(&[line("a3")], whole).unwrap();
        let expected = [whole(), vec![line("a2"), line("a3")]].concat();
        assert_eq!(parse(&fs::read(&path).unwrap()), Ok(expected));
    }

    #[test]
    fn wherever_the_last_write_was_torn_what_was_written_before_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut lines, _) = JournalFile::open(&path).unwrap();
        lines.append(&[line("a1")], whole).unwrap();
        let before = fs::read(&path).unwrap();
        lines.append(&[line("é2")], whole).unwrap();
        drop(lines);
        let after = fs::read(&path).unwrap();
        for end in before.len()..after.len() {
            assert_eq!(parse(&after[..end]), parse(&before), "torn at {end}");
            fs::write(&path, &after[..end]).unwrap();
            JournalFile::open(&path).unwrap();
        }
    }

    #[test]
    fn a_file_that_has_grown_long_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut lines, _) = JournalFile::open(&path).unwrap();
        lines.append(&vec![line("a1"); LINES - 1], whole).unwrap();
        lines.append(&[line("a2")], whole).unwrap();
        assert_eq!(parse(&fs::read(&path).unwrap()).unwrap().len(), 2);
    }
}
