//! Conversions between openraft's types and the messages on disk and on the wire.

use std::collections::{BTreeMap, BTreeSet};

use openraft::alias::CommittedLeaderIdOf;
use openraft::entry::RaftEntry as _;
use openraft::vote::RaftLeaderId as _;
use openraft::{EntryPayload, alias::LeaderIdOf};

use super::options::MAX_REPLICAS;
use super::types::{
    LogId, Membership, Proposed, RaftEntry, RaftMember, RaftVote, SnapshotMeta, StoredMembership, Types,
};
use allclear_wire::pb::allclear::raft::v1 as pb;

/// The longest name in a membership; names of VMs and of DNS are shorter.
const MAX_NAME_BYTES: usize = 256;
const MAX_ADDRESS_BYTES: usize = 512;

/// A message that lacks a required part, or contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

pub(crate) fn log_id(id: pb::LogId) -> LogId {
    LogId::new(CommittedLeaderIdOf::<Types>::from(id.term), id.index)
}

pub(crate) fn pb_log_id(id: &LogId) -> pb::LogId {
    pb::LogId { term: id.committed_leader_id().term, index: id.index() }
}

pub(crate) fn vote(vote: Option<pb::Vote>) -> Result<RaftVote, Malformed> {
    let vote = vote.ok_or(Malformed("the vote is missing"))?;
    let leader_id = LeaderIdOf::<Types>::new(vote.term, vote.node);
    Ok(RaftVote { leader_id, committed: vote.committed })
}

pub(crate) fn pb_vote(vote: &RaftVote) -> pb::Vote {
    pb::Vote { term: vote.leader_id.term, node: vote.leader_id.voted_for, committed: vote.committed }
}

pub(crate) fn membership(membership: pb::Membership) -> Result<Membership, Malformed> {
    let is_named =
        |member: &pb::Member| member.replica.len() <= MAX_NAME_BYTES && member.address.len() <= MAX_ADDRESS_BYTES;
    // A lost disk is a member beside the new disk of its name for a while.
    if membership.members.len() > MAX_REPLICAS * 2 || !membership.members.iter().all(is_named) {
        return Err(Malformed("the membership has more members, or longer names, than a cluster may have"));
    }
    let voters = membership.voters.into_iter().map(|set| set.nodes.into_iter().collect::<BTreeSet<_>>());
    let members = membership
        .members
        .into_iter()
        .map(|member| {
            (member.node, RaftMember { replica: member.replica, address: member.address, lineage: member.lineage })
        })
        .collect::<BTreeMap<_, _>>();
    Membership::new(voters.collect(), members).map_err(|_| Malformed("the membership contradicts itself"))
}

pub(crate) fn pb_membership(membership: &Membership) -> pb::Membership {
    let voters = membership.get_joint_config().iter();
    let members = membership.nodes().map(|(node, member)| pb::Member {
        node: *node,
        replica: member.replica.clone(),
        address: member.address.clone(),
        lineage: member.lineage,
    });
    pb::Membership {
        voters: voters.map(|set| pb::Voters { nodes: set.iter().copied().collect() }).collect(),
        members: members.collect(),
    }
}

pub(crate) fn entry(entry: pb::Entry) -> Result<RaftEntry, Malformed> {
    let id = log_id(entry.id.ok_or(Malformed("the entry has no position"))?);
    let payload = match entry.payload.ok_or(Malformed("this program does not know the payload of the entry"))? {
        pb::entry::Payload::Blank(pb::Blank {}) => EntryPayload::Blank,
        pb::entry::Payload::Proposed(bytes) => EntryPayload::Normal(Proposed(bytes)),
        pb::entry::Payload::Membership(next) => EntryPayload::Membership(membership(next)?),
    };
    Ok(RaftEntry::new(id, payload))
}

pub(crate) fn pb_entry(entry: &RaftEntry) -> pb::Entry {
    let payload = match &entry.payload {
        EntryPayload::Blank => pb::entry::Payload::Blank(pb::Blank {}),
        EntryPayload::Normal(Proposed(bytes)) => pb::entry::Payload::Proposed(bytes.clone()),
        EntryPayload::Membership(next) => pb::entry::Payload::Membership(pb_membership(next)),
    };
    pb::Entry { id: Some(pb_log_id(&entry.log_id)), payload: Some(payload) }
}

pub(crate) fn snapshot_meta(head: pb::SnapshotHead) -> Result<SnapshotMeta, Malformed> {
    let stored = match head.membership {
        Some(next) => StoredMembership::new(head.membership_at.map(log_id), membership(next)?),
        None => StoredMembership::default(),
    };
    Ok(SnapshotMeta { last_log_id: head.last.map(log_id), last_membership: stored })
}

pub(crate) fn pb_snapshot_head(meta: &SnapshotMeta) -> pb::SnapshotHead {
    let stored = &meta.last_membership;
    let known = stored.log_id().is_some() || stored.nodes().next().is_some();
    pb::SnapshotHead {
        last: meta.last_log_id.as_ref().map(pb_log_id),
        membership_at: stored.log_id().as_ref().map(pb_log_id),
        membership: known.then(|| pb_membership(stored.membership())),
    }
}

#[cfg(test)]
mod tests;
