//! Counts commits in a second file, to notice a lost commit.
//!
//! Where the checksums of the last commit do not match, redb returns to the previous commit. The return is right for a
//! commit torn by a power cut, because nothing relied on the commit. An acknowledged commit damaged later would be lost
//! in silence, with a vote or an entry. So every commit has a number, and this file has the number of the last commit
//! on the disk. The file is not synced, so that a commit needs one fsync: after a power cut the file may be behind the
//! database, and is never ahead of the database.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use redb::{Error, ReadableTable as _, TableDefinition, WriteTransaction};

use allclear_wire::checksum;

pub(super) const TALLY: TableDefinition<'static, (), u64> = TableDefinition::new("tally");
pub(super) const FILE: &str = "tally";
const PLACE: &[u8] = b"tally";
/// Longer than the file is.
const MOST: u64 = 64;

/// The file, and the lowest possible number of writes according to the file.
#[derive(Debug)]
pub(super) struct CommitCounter(Mutex<(File, u64)>);

impl CommitCounter {
    /// Opens the counter. A new or incomplete file counts as zero: the database is checked by itself.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(directory.join(FILE))?;
        let mut sealed = Vec::new();
        (&mut file).take(MOST).read_to_end(&mut sealed)?;
        let count = checksum::verify_checksum(PLACE, &sealed)
            .ok()
            .and_then(|count| count.try_into().ok())
            .map(u64::from_le_bytes);
        if count.is_none() && !sealed.is_empty() {
            tracing::warn!(file = %directory.join(FILE).display(), "commit counter not read; a new one created");
        }
        Ok(Self(Mutex::new((file, count.unwrap_or_default()))))
    }

    /// The number of writes once on the disk.
    pub(super) fn least(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Records the number of writes on the disk.
    pub(super) fn note(&self, count: u64) -> io::Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Writes end in any order.
        if count > kept.1 {
            kept.0.write_all_at(&checksum::append_checksum(PLACE, count.to_le_bytes().into()), 0)?;
            kept.1 = count;
        }
        Ok(())
    }

    /// For tests: a counter with this count.
    #[cfg(test)]
    pub(super) fn told(count: u64) -> Self {
        Self(Mutex::new((tempfile::tempfile().unwrap(), count)))
    }
}

/// Counts one more write within the transaction.
pub(super) fn count(transaction: &WriteTransaction) -> Result<u64, Error> {
    let mut table = transaction.open_table(TALLY)?;
    let count = table.get(())?.map_or(0, |count| count.value()).saturating_add(1);
    table.insert((), count)?;
    Ok(count)
}
