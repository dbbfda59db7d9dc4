//! The types with which openraft is used.

use std::fmt;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use openraft::alias::{LogIdOf, SnapshotMetaOf, SnapshotOf, StoredMembershipOf, VoteOf};
use openraft::impls::leader_id_std;

use super::state_machine::StateMachine;

openraft::declare_raft_types!(
    /// Opaque entries, one leader per term, node ids of our own making.
    pub(crate) Types:
        D = Proposed,
        R = Bytes,
        Node = RaftMember,
        LeaderId = leader_id_std::LeaderId<Self::Term, Self::NodeId>,
        AsyncRuntime = openraft_rt_tokio::TokioRuntime,
);

pub(crate) type LogId = LogIdOf<Types>;
pub(crate) type RaftVote = VoteOf<Types>;
pub(crate) type RaftEntry = openraft::alias::EntryOf<Types>;
pub(crate) type Membership = openraft::Membership<u64, RaftMember>;
pub(crate) type StoredMembership = StoredMembershipOf<Types>;
pub(crate) type SnapshotMeta = SnapshotMetaOf<Types>;
pub(crate) type Snapshot = SnapshotOf<Types, Bytes>;
pub(crate) type SharedStateMachine = Arc<RwLock<Box<dyn StateMachine>>>;

/// A stamped proposal: bytes that only the state machine understands.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proposed(pub(crate) Bytes);

impl fmt::Debug for Proposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Proposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A replica in the membership of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RaftMember {
    /// The replica's name.
    pub(crate) replica: String,
    /// The listen address, unless the configuration of the asking replica says otherwise.
    pub(crate) address: String,
    /// Zero, or a unique number for a cluster restored from one disk. All members have the same number; a log of
    /// another generation is never mixed with this log.
    pub(crate) lineage: u64,
}

pub(crate) fn lineage(membership: &Membership) -> u64 {
    membership.nodes().map(|(_, member)| member.lineage).max().unwrap_or_default()
}
