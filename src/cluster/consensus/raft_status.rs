//! The Raft status of this replica: its role, its leader, and its quorum.

use std::time::Instant;

/// The role of a replica in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaftRole {
    Leader,
    Follower,
    Candidate,
    Learner,
    /// No member, with the reason and the remedy.
    Outside(String),
}

impl RaftRole {
    /// The name of the role in the status.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Learner => "learner",
            Self::Outside(_) => "outside",
        }
    }
}

/// The Raft status of a replica. A leader without a quorum leads no replica: check `quorum` before relying on `role`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftStatus {
    pub role: RaftRole,
    /// The leader of this replica; `None` if the leader was not heard within its lease.
    pub leader: Option<String>,
    pub term: u64,
    /// The quorum epoch: how often, within this term, this leader has found its quorum; 0 on any other replica. Two
    /// observations of this leader with equal term and epoch prove an unbroken quorum in between: a time of
    /// uncertainty, as after a freeze, begins a new epoch.
    pub turn: u64,
    /// On a leader: a quorum acknowledged the leader within its lease. On other replicas: a leader was heard within its
    /// lease. A hint for people and plans: after a freeze the hint may look fresh, so an action in the world confirms
    /// the quorum first.
    pub quorum: bool,
    /// The last applied and published position, 0 before the first.
    pub applied: u64,
    /// When this replica last noticed a change of the leader or the term.
    pub leader_since: Instant,
}

impl RaftStatus {
    /// True if this replica leads to its own knowledge; dependent actions confirm leadership first.
    pub fn leads(&self) -> bool {
        self.role == RaftRole::Leader && self.quorum
    }

    /// True if a leader, perhaps this replica, is within its lease.
    pub fn has_leader(&self) -> bool {
        self.quorum && self.leader.is_some()
    }

    /// True for a member of the cluster without a quorum.
    pub fn lacks_quorum(&self) -> bool {
        !self.quorum && !matches!(self.role, RaftRole::Outside(_))
    }

    /// The status of a replica that takes no part.
    pub(crate) fn outside(reason: &str) -> Self {
        Self {
            role: RaftRole::Outside(reason.into()),
            leader: None,
            term: 0,
            turn: 0,
            quorum: false,
            applied: 0,
            leader_since: Instant::now(),
        }
    }
}
