//! The tables of a replica's database, their keys, and the bounds of the stored data.

use redb::{TableDefinition, WriteTransaction};

use super::types::LogId;
use super::{checked, codec};
use allclear_wire::pb::allclear::raft::v1 as pb;

/// Each entry by its index.
pub(super) const LOG: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("log");
/// Single values, by the keys below.
pub(super) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const IDENTITY: &str = "identity";
pub(super) const VOTE: &str = "vote";
pub(super) const COMMITTED: &str = "committed";
pub(super) const PURGED: &str = "purged";
pub(super) const SNAPSHOT: &str = "snapshot";

/// The most bytes of entries sent together, unless a single entry has more.
pub(super) const MAX_BATCH_BYTES: usize = 1 << 20;

/// The advice for unreadable stored data.
pub(super) const WHAT_TO_DO: &str = "this replica skips no entry. Run the program version that wrote the data. If no \
                                     such version exists and the other replicas continue: stop this replica, empty \
                                     its data_dir and start the replica again; the replica returns with an empty \
                                     disk. If all replicas stop at the same entry: run `allclear member restore` on \
                                     one VM; that command cuts the log before the entry";

pub(super) fn put_committed(transaction: &WriteTransaction, committed: &LogId) -> Result<(), redb::Error> {
    checked::put(&mut transaction.open_table(META)?, COMMITTED, &codec::pb_log_id(committed))
}

pub(super) fn last_index(snapshot: Option<&pb::Snapshot>) -> Option<u64> {
    Some(snapshot?.head.as_ref()?.last?.index)
}
