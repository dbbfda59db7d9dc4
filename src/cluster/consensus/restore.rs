//! Makes a cluster of one from a single disk when the other disks are lost for good. Works offline, and only at an
//! operator's command.
//!
//! The disk becomes a new node of a new generation. The rest of the former cluster can neither vote for the new node
//! nor be added to its cluster, and its entries never mix with entries that a former quorum may still write.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use openraft::EntryPayload;
use openraft::entry::RaftEntry as _;

use super::disk::{Disk, random_node};
use super::environment::Environment;
use super::failure::OpenError;
use super::log::decode;
use super::member_list::MemberNames;
use super::state_machine::StateMachine;
use super::tables::{COMMITTED, IDENTITY, LOG, META, PURGED, SNAPSHOT, VOTE};
use super::term_check::TERMS_AT_MOST;
use super::types::{LogId, Membership, Proposed, RaftEntry, RaftMember};
use super::{checked, codec};
use allclear_wire::pb::allclear::raft::v1 as pb;

/// The contents of a stopped replica's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskContents {
    pub replica: String,
    /// The last stored entry, known to a quorum or not.
    pub last: u64,
    pub term: u64,
    /// Up to here entries were known to be committed; later entries count as decided from now on.
    pub committed: u64,
    pub voters: Vec<String>,
    pub learners: Vec<String>,
    /// The first unreadable entry, and the reason. This entry and all later entries are lost with the restore.
    pub unreadable: Option<(u64, String)>,
}

/// The data directory of a stopped replica; locked for the lifetime of this value.
pub struct SurvivingReplica {
    disk: Arc<Disk>,
    last: LogId,
    term: u64,
    committed: u64,
    membership: Membership,
    unreadable: Option<(u64, String)>,
}

impl SurvivingReplica {
    /// Opens the directory, with the state machine that is to apply the log. Changes nothing. Blocks.
    pub fn open(directory: &Path, cluster: &str, state_machine: &dyn StateMachine) -> Result<Self, OpenError> {
        let disk = Disk::open_by(Environment::default(), directory, cluster, None)?;
        let (mut last, mut membership) = (disk.position(PURGED)?, Membership::default());
        if let Some(head) = disk.message::<pb::Snapshot>(SNAPSHOT)?.and_then(|snapshot| snapshot.head) {
            let meta = codec::snapshot_meta(head).map_err(|why| OpenError::Start(why.to_string()))?;
            last = last.max(meta.last_log_id);
            membership = meta.last_membership.membership().clone();
        }
        let known = last.max(disk.position(COMMITTED)?).map_or(0, |id| id.index());
        let mut unreadable = None;
        for (index, message) in disk.stored((Bound::Unbounded, Bound::Unbounded), usize::MAX)? {
            let entry = match read(index, &message, state_machine) {
                Ok(entry) => entry,
                Err(why) => {
                    unreadable = Some((index, why));
                    break;
                }
            };
            last = last.max(Some(entry.log_id));
            if let EntryPayload::Membership(next) = entry.payload {
                membership = next;
            }
        }
        let is_empty = membership.nodes().next().is_none();
        let Some(last) = last.filter(|_| !is_empty) else {
            return Err(OpenError::NothingStored { path: directory.into() });
        };
        // No member of the former cluster counts any more, so an implausible term is not continued.
        let voted = disk.message::<pb::Vote>(VOTE)?.map_or(0, |vote| vote.term);
        let written = last.committed_leader_id().term;
        let term = if voted <= written.saturating_add(TERMS_AT_MOST) { voted.max(written) } else { written };
        let committed = known.min(last.index());
        Ok(Self { disk, last, term, committed, membership, unreadable })
    }

    pub fn holding(&self) -> DiskContents {
        let MemberNames { voters, learners } = MemberNames::of(&self.membership);
        DiskContents {
            replica: self.disk.identity.replica.clone(),
            last: self.last.index(),
            term: self.last.committed_leader_id().term,
            committed: self.committed,
            voters,
            learners,
            unreadable: self.unreadable.clone(),
        }
    }

    /// Makes this disk alone the cluster; the former members become learners that wait for empty disks.
    pub fn restore(self) -> Result<(), OpenError> {
        let own = &self.disk.identity;
        let fresh = || random_node(&own.cluster, &own.replica);
        let (node, lineage, term) = (fresh(), fresh(), self.term.saturating_add(1));
        let mut members = BTreeMap::new();
        for (former, member) in self.membership.nodes() {
            let is_own = *former == own.node || member.replica == own.replica;
            members.insert(if is_own { node } else { fresh() }, RaftMember { lineage, ..member.clone() });
        }
        members.entry(node).or_insert_with(|| RaftMember {
            replica: own.replica.clone(),
            lineage,
            ..RaftMember::default()
        });
        let membership = Membership::new(vec![BTreeSet::from([node])], members);
        let membership = membership.map_err(|error| OpenError::Start(error.to_string()))?;
        let index = self.last.index().saturating_add(1);
        let id = codec::log_id(pb::LogId { term, index });
        let entry = RaftEntry::new(id, EntryPayload::Membership(membership));
        self.disk.write(|transaction| {
            let mut log = transaction.open_table(LOG)?;
            log.retain_in(index.., |_, _| false)?;
            checked::put_entry(&mut log, &entry)?;
            let mut meta = transaction.open_table(META)?;
            if self.unreadable.is_some() {
                checked::put(&mut meta, COMMITTED, &codec::pb_log_id(&self.last))?;
            }
            checked::put(&mut meta, VOTE, &pb::Vote { term, node, committed: true })?;
            checked::put(&mut meta, IDENTITY, &pb::Identity { node, ..own.clone() })
        })
    }
}

/// Reads an entry as the replica would at its start.
fn read(index: u64, message: &[u8], state_machine: &dyn StateMachine) -> Result<RaftEntry, String> {
    let entry = decode(index, message).map_err(|why| why.to_string())?;
    if let EntryPayload::Normal(Proposed(bytes)) = &entry.payload {
        state_machine.understands(bytes).map_err(|why| why.to_string())?;
    }
    Ok(entry)
}
