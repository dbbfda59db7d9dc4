//! The Raft status of this replica: its role, its leader, and whether a quorum is behind it.

use std::time::Instant;

/// What a replica is in its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaftRole {
    Leader,
    Follower,
    Candidate,
    Learner,
    /// No member, with the reason and what to do.
    Outside(String),
}

impl RaftRole {
    /// The word of the status (`contract.md` 4).
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

/// Where a replica stands. A leader without a quorum leads nobody: see `quorum` before believing `role`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftStatus {
    pub role: RaftRole,
    /// Whom this replica follows; nobody when it was not heard within its lease.
    pub leader: Option<String>,
    pub term: u64,
    /// How often, within this term, this leader has found its quorum; 0 of anybody else. Who sees it lead twice in one
    /// term and turn knows that its quorum was there all the time in between: a moment in which that could not be told,
    /// as after a freeze, begins a new turn.
    pub turn: u64,
    /// A leader: a quorum acknowledged it within its lease. Anybody else: a leader was heard within its lease.
    /// A hint for people and plans: after a freeze it may look fresh, so what acts in the world confirms first.
    pub quorum: bool,
    /// The last position that is applied and published, 0 before the first.
    pub applied: u64,
    /// When the leader or the term last changed, as this replica saw it.
    pub leader_since: Instant,
}

impl RaftStatus {
    /// It leads as far as it knows; what hangs on it is confirmed first.
    pub fn leads(&self) -> bool {
        self.role == RaftRole::Leader && self.quorum
    }

    /// A leader, perhaps this replica, is there within its lease.
    pub fn has_leader(&self) -> bool {
        self.quorum && self.leader.is_some()
    }

    /// It belongs to the cluster, and no quorum is behind it.
    pub fn lacks_quorum(&self) -> bool {
        !self.quorum && !matches!(self.role, RaftRole::Outside(_))
    }

    /// Of a replica that takes no part.
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
