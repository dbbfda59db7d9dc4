//! Agreement as the replicas need it: a log that a leader with a quorum appends to, elections with a vote before the
//! vote, contact by what was sent when, reads by a round trip, learners, and machines that come back with an empty disk.
//! Kept as small as it can be.

mod apply;
mod disk;
mod election;
mod log;
mod members;
mod membership;
mod read_index;
mod replication;
mod status;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) use log::Chain;
pub(super) use members::ModelMembers;
pub(super) use status::ModelStatus;
pub(super) use stored::ModelDisk;

use stored::LogSlot;

use super::tasks::Oneshot;
use allclear_core::model::command::ApplyResult;
use allclear_core::model::time::Timestamp;

pub(super) const HEARTBEAT: Duration = Duration::from_millis(200);
const ELECTION_LEAST: u64 = 600;
const ELECTION_MOST: u64 = 1200;
/// A leader that was not heard for so long is none.
pub(super) const LEASE: Duration = Duration::from_millis(ELECTION_MOST);
/// Entries in one message.
const AT_ONCE: usize = 64;

#[derive(Clone)]
pub(super) struct Append {
    pub(super) term: u64,
    pub(super) previous: usize,
    pub(super) previous_term: u64,
    pub(super) entries: Vec<LogSlot>,
    pub(super) committed: usize,
    /// On the sender's steady clock.
    pub(super) sent: Timestamp,
}

#[derive(Clone)]
pub(super) struct Appended {
    term: u64,
    is_ok: bool,
    matched: usize,
    /// As the leader said.
    sent: Timestamp,
}

#[derive(Clone)]
pub(super) struct ModelVote {
    term: u64,
    is_pre: bool,
    is_granted: bool,
}

#[derive(Clone)]
pub(super) struct Ballot {
    pub(super) term: u64,
    pub(super) last: (u64, usize),
    /// Only asks whether it would be granted.
    pub(super) is_pre: bool,
    /// The leader wants it.
    pub(super) is_transfer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ModelRole {
    #[default]
    Follower,
    Candidate {
        is_pre: bool,
    },
    Leader,
}

/// What a process knows of agreement beside what is on its disk. Times are of its steady clock.
#[derive(Default)]
pub(super) struct Agreement {
    pub(super) role: ModelRole,
    /// Whom it follows in this term.
    pub(super) leader: Option<usize>,
    pub(super) heard: Option<Timestamp>,
    pub(super) patience: Timestamp,
    /// Only the tick that was asked for last counts.
    pub(super) ticks: u32,
    pub(super) committed: usize,
    pub(super) applied: usize,
    pub(super) is_applying: bool,
    votes: BTreeSet<usize>,
    next: BTreeMap<usize, usize>,
    matched: BTreeMap<usize, usize>,
    /// By which disk each follower was last heard.
    disks: BTreeMap<usize, u32>,
    /// When what each voter acknowledged last was sent.
    pub(super) acknowledged: BTreeMap<usize, Timestamp>,
    turns: status::ModelQuorumEpochs,
    reads: Vec<read_index::PendingRead>,
    /// Who waits for what stands at a position, if it is of this term.
    waiting: BTreeMap<usize, (u64, ProposalWaiter<Proposed>)>,
    pub(super) known: ModelStatus,
}

/// Whoever is told on this machine.
#[derive(Clone)]
pub(super) struct ProposalWaiter<T> {
    pub(super) vm: usize,
    pub(super) answer: Oneshot<T>,
}

/// What became of a proposal: `None` where it was not taken, an error where nobody knows.
pub(super) type Proposed = Option<Result<ApplyResult, ()>>;
/// How far a reader has to have applied; `None` where nobody can tell.
pub(super) type Confirmed = Option<usize>;
