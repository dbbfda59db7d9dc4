//! What is looked at before a data directory is used: that nothing in it changed, and that nothing is missing. The
//! pages were looked at when it was opened, see `platter`.
//!
//! A replica that forgot a vote or an entry could help to decide something twice. It would rather not start.

use prost::Message as _;
use redb::{Database, Error, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableError};

use super::disk::{LOG, META};
use super::log::PURGED;
use super::sealed;
use super::state::SNAPSHOT;
use super::tally::{TALLY, Tally};
use crate::wire::pb::allclear::raft::v1 as pb;

/// Says how many writes there were.
pub(super) fn inspect(database: &Database, tally: Option<&Tally>) -> Result<u64, Error> {
    let transaction = database.begin_read()?;
    let written = match transaction.open_table(TALLY) {
        Ok(table) => table.get(())?.map_or(0, |count| count.value()),
        // Nothing was counted when it was made.
        Err(TableError::TableDoesNotExist(_)) => 0,
        Err(error) => return Err(error.into()),
    };
    let least = tally.map_or(0, Tally::least);
    if written < least {
        let why =
            format!("{least} writes were on this disk, it holds {written}: the last ones are lost, or it is a copy");
        return Err(Error::Corrupted(why));
    }
    let covered = of_meta(&transaction)?;
    of_log(&transaction, &covered)?;
    Ok(written)
}

/// Up to where the log may be missing.
struct Covered {
    purged: Option<u64>,
    snapshot: Option<u64>,
}

fn of_meta(transaction: &ReadTransaction) -> Result<Covered, Error> {
    let mut covered = Covered { purged: None, snapshot: None };
    for pair in transaction.open_table(META)?.iter()? {
        let (key, value) = pair?;
        let (key, message) = (key.value(), sealed::value(key.value(), value.value())?);
        let damaged = |why: prost::DecodeError| Error::Corrupted(format!("{key}: {why}"));
        if key == PURGED {
            covered.purged = Some(pb::LogId::decode(message).map_err(damaged)?.index);
        } else if key == SNAPSHOT {
            let head = pb::Snapshot::decode(message).map_err(damaged)?.head;
            covered.snapshot = head.and_then(|head| head.last).map(|id| id.index);
        }
    }
    if covered.purged > covered.snapshot {
        let why = "the log was shortened for a snapshot that is not there".into();
        return Err(Error::Corrupted(why));
    }
    Ok(covered)
}

fn of_log(transaction: &ReadTransaction, covered: &Covered) -> Result<(), Error> {
    let after = |index: Option<u64>| index.map_or(0, |index| index.saturating_add(1));
    let mut next = after(covered.purged);
    for pair in transaction.open_table(LOG)?.iter()? {
        let (index, value) = pair?;
        let index = index.value();
        sealed::entry(index, value.value())?;
        // A snapshot that came from elsewhere reaches further than the log did.
        if index != next && (index < next || index != after(covered.snapshot)) {
            return Err(Error::Corrupted(format!("the log goes on at {index} where entry {next} is expected")));
        }
        next = index.saturating_add(1);
    }
    Ok(())
}
