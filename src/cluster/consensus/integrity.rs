//! Verifies a data directory before its use: nothing in the directory changed, and nothing is missing. `backend` has
//! redb verify the pages.
//!
//! A replica that lost a vote or an entry could help to decide something twice, so such a replica does not start.

use redb::{Error, ReadTransaction, ReadableTable as _, TableError};

use super::checked;
use super::commit_counter::TALLY;
use super::tables::{LOG, META, PURGED, SNAPSHOT, last_index};
use allclear_wire::pb::allclear::raft::v1 as pb;

/// Returns the number of writes, which is at least `least`.
pub(super) fn inspect(transaction: &ReadTransaction, least: u64) -> Result<u64, Error> {
    let written = match transaction.open_table(TALLY) {
        Ok(table) => table.get(())?.map_or(0, |count| count.value()),
        // The database was made before writes were counted.
        Err(TableError::TableDoesNotExist(_)) => 0,
        Err(error) => return Err(error.into()),
    };
    if written < least {
        let why = format!(
            "this disk held {least} writes before and holds {written} now: the last writes are lost, or the \
                     disk is an older copy"
        );
        return Err(Error::Corrupted(why));
    }
    let meta = transaction.open_table(META)?;
    for pair in meta.iter()? {
        let (key, sealed) = pair?;
        checked::value(key.value(), sealed.value())?;
    }
    let purged = checked::get::<pb::LogId>(&meta, PURGED)?.map(|id| id.index);
    let snapshot = last_index(checked::get(&meta, SNAPSHOT)?.as_ref());
    if purged > snapshot {
        let why = "the log was shortened for a snapshot, and the snapshot is missing".into();
        return Err(Error::Corrupted(why));
    }
    let after = |index: Option<u64>| index.map_or(0, |index| index.saturating_add(1));
    let mut next = after(purged);
    for pair in transaction.open_table(LOG)?.iter()? {
        let (index, sealed) = pair?;
        let index = index.value();
        checked::entry(index, sealed.value())?;
        // A snapshot received from another replica reaches further than the log did.
        if index != next && (index < next || index != after(snapshot)) {
            return Err(Error::Corrupted(format!("the log continues at entry {index} instead of entry {next}")));
        }
        next = index.saturating_add(1);
    }
    Ok(written)
}
