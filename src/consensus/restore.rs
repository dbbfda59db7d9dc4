//! A cluster of one made out of what one disk holds, when the others' disks are lost for good. Offline, and only when
//! somebody says so who knows what it costs.
//!
//! The disk becomes a new node of a new lineage: what is left of the former cluster can neither vote for it nor be
//! brought into it, and its entries never mix with those that a former quorum may still write elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use openraft::EntryPayload;
use openraft::entry::RaftEntry as _;
use prost::Message as _;
use redb::{ReadableDatabase as _, ReadableTable as _};

use super::disk::{Disk, IDENTITY, LOG, META, random_node};
use super::failure::OpenError;
use super::log::{COMMITTED, PURGED, VOTE};
use super::roster::Members;
use super::state::SNAPSHOT;
use super::types::{Entry, LogId, Member, Membership};
use super::{codec, sealed};
use crate::wire::pb::allclear::raft::v1 as pb;

/// What a stopped replica's disk holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    pub replica: String,
    /// The last entry that is stored, whether or not a quorum knew of it.
    pub last: u64,
    pub term: u64,
    /// Up to here entries were known to be committed; what follows counts as decided from now on.
    pub committed: u64,
    pub voters: Vec<String>,
    pub learners: Vec<String>,
}

/// The data directory of a replica that does not run; locked as long as this lives.
pub struct Survivor {
    disk: Arc<Disk>,
    last: LogId,
    term: u64,
    committed: u64,
    membership: Membership,
}

impl Survivor {
    /// Changes nothing. Blocks.
    pub fn open(directory: &Path, cluster: &str) -> Result<Self, OpenError> {
        let disk = Disk::open_existing(directory, cluster)?;
        let damaged = |why: String| OpenError::Damaged { path: directory.into(), why };
        let stored = read(&disk).map_err(|error| damaged(error.to_string()))?;
        let decoded = decode(&stored).map_err(&damaged)?;
        let (last, membership) = decoded.ok_or_else(|| OpenError::NothingStored { path: directory.into() })?;
        let term = |bytes: &Option<Vec<u8>>| -> Result<u64, String> {
            let Some(bytes) = bytes else { return Ok(0) };
            let vote = pb::Vote::decode(bytes.as_slice()).map_err(|why| why.to_string())?;
            Ok(vote.term)
        };
        let term = term(&stored.vote).map_err(&damaged)?.max(last.committed_leader_id().term);
        let committed = position(stored.committed.as_ref()).map_err(&damaged)?.map_or(0, |id| id.index());
        Ok(Self { disk, last, term, committed: committed.max(stored.snapshot_index()), membership })
    }

    pub fn holding(&self) -> Holding {
        let Members { voters, learners } = Members::of(&self.membership);
        Holding {
            replica: self.disk.identity.replica.clone(),
            last: self.last.index(),
            term: self.last.committed_leader_id().term,
            committed: self.committed,
            voters,
            learners,
        }
    }

    /// This disk alone is the cluster from now on; the former members are seats that wait for empty disks.
    pub fn restore(self) -> Result<(), OpenError> {
        let own = &self.disk.identity;
        let fresh = || random_node(&own.cluster, &own.replica);
        let (node, lineage, term) = (fresh(), fresh(), self.term.saturating_add(1));
        let mut members = BTreeMap::new();
        for (former, member) in self.membership.nodes() {
            let is_own = *former == own.node || member.replica == own.replica;
            members.insert(if is_own { node } else { fresh() }, Member { lineage, ..member.clone() });
        }
        members.entry(node).or_insert_with(|| Member { replica: own.replica.clone(), lineage, ..Member::default() });
        let failed = |why: String| OpenError::Start(why);
        let membership = Membership::new(vec![BTreeSet::from([node])], members);
        let membership = membership.map_err(|error| failed(error.to_string()))?;
        let index = self.last.index().saturating_add(1);
        let id = codec::log_id(pb::LogId { term, index });
        let entry = codec::pb_entry(&Entry::new(id, EntryPayload::Membership(membership))).encode_to_vec();
        let vote = pb::Vote { term, node, committed: true }.encode_to_vec();
        let identity = pb::Identity { node, ..own.clone() }.encode_to_vec();
        let written = self.disk.write(|transaction| {
            sealed::put_entry(&mut transaction.open_table(LOG)?, index, entry)?;
            let mut meta = transaction.open_table(META)?;
            sealed::put(&mut meta, VOTE, vote)?;
            sealed::put(&mut meta, IDENTITY, identity)
        });
        written.map_err(|error| failed(error.to_string()))
    }
}

struct Stored {
    log: Vec<Vec<u8>>,
    vote: Option<Vec<u8>>,
    committed: Option<Vec<u8>>,
    purged: Option<Vec<u8>>,
    snapshot: Option<pb::SnapshotHead>,
}

impl Stored {
    fn snapshot_index(&self) -> u64 {
        self.snapshot.as_ref().and_then(|head| head.last).map_or(0, |id| id.index)
    }
}

fn read(disk: &Disk) -> Result<Stored, redb::Error> {
    let table = disk.database.begin_read()?.open_table(LOG)?;
    let mut log = Vec::new();
    for pair in table.iter()? {
        let (index, value) = pair?;
        log.push(sealed::entry(index.value(), value.value())?.to_vec());
    }
    let snapshot = disk.meta(SNAPSHOT)?.and_then(|bytes| pb::Snapshot::decode(bytes.as_slice()).ok());
    Ok(Stored {
        log,
        vote: disk.meta(VOTE)?,
        committed: disk.meta(COMMITTED)?,
        purged: disk.meta(PURGED)?,
        snapshot: snapshot.and_then(|snapshot| snapshot.head),
    })
}

fn position(bytes: Option<&Vec<u8>>) -> Result<Option<LogId>, String> {
    let Some(bytes) = bytes else { return Ok(None) };
    let id = pb::LogId::decode(bytes.as_slice()).map_err(|why| why.to_string())?;
    Ok(Some(codec::log_id(id)))
}

/// The last position and the last membership; `None` where the replica never took part in anything.
fn decode(stored: &Stored) -> Result<Option<(LogId, Membership)>, String> {
    let mut last = position(stored.purged.as_ref())?;
    let mut membership = None;
    if let Some(head) = &stored.snapshot {
        let meta = codec::snapshot_meta(head.clone()).map_err(|why| why.to_string())?;
        last = last.max(meta.last_log_id);
        membership = Some(meta.last_membership.membership().clone());
    }
    for bytes in &stored.log {
        let entry = pb::Entry::decode(bytes.as_slice()).map_err(|why| why.to_string())?;
        let entry = codec::entry(entry).map_err(|why| why.to_string())?;
        last = last.max(Some(entry.log_id));
        if let EntryPayload::Membership(next) = entry.payload {
            membership = Some(next);
        }
    }
    Ok(last.zip(membership.filter(|membership| membership.nodes().next().is_some())))
}
