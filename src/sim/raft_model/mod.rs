//! A Raft model as the replicas need it: a log with a leader that has a quorum, elections with a pre-vote, contact by
//! the send times of messages, linearizable reads, learners, and machines that return with an empty disk. Kept minimal.

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
/// A leader not heard for this duration has lost its lease.
pub(super) const LEASE: Duration = Duration::from_millis(ELECTION_MOST);
/// The limit of entries in one message.
const AT_ONCE: usize = 64;

#[derive(Clone)]
pub(super) struct Append {
    pub(super) term: u64,
    pub(super) previous: usize,
    pub(super) previous_term: u64,
    pub(super) entries: Vec<LogSlot>,
    pub(super) committed: usize,
    /// On the sender's monotonic clock.
    pub(super) sent: Timestamp,
}

#[derive(Clone)]
pub(super) struct Appended {
    term: u64,
    is_ok: bool,
    matched: usize,
    /// The send time, copied from the leader's message.
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
    /// True if the ballot is a pre-vote.
    pub(super) is_pre: bool,
    /// The leader has requested this election.
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

/// The state of Raft in a process, in addition to the disk. Times are of the process's monotonic clock.
#[derive(Default)]
pub(super) struct Agreement {
    pub(super) role: ModelRole,
    /// The leader in this term.
    pub(super) leader: Option<usize>,
    pub(super) heard: Option<Timestamp>,
    pub(super) patience: Timestamp,
    /// Only the last requested tick counts.
    pub(super) ticks: u32,
    pub(super) committed: usize,
    pub(super) applied: usize,
    pub(super) is_applying: bool,
    votes: BTreeSet<usize>,
    next: BTreeMap<usize, usize>,
    matched: BTreeMap<usize, usize>,
    /// The disk of each follower at the last contact.
    disks: BTreeMap<usize, u32>,
    /// The send time of the last message acknowledged by each voter.
    pub(super) acknowledged: BTreeMap<usize, Timestamp>,
    turns: status::ModelQuorumEpochs,
    reads: Vec<read_index::PendingRead>,
    /// The waiters for the entry at a position, if the entry is of this term.
    waiting: BTreeMap<usize, (u64, ProposalWaiter<Proposed>)>,
    pub(super) known: ModelStatus,
}

/// A waiter on this machine.
#[derive(Clone)]
pub(super) struct ProposalWaiter<T> {
    pub(super) vm: usize,
    pub(super) answer: Oneshot<T>,
}

/// The result of a proposal: `None` if rejected, an error if the result is unknown.
pub(super) type Proposed = Option<Result<ApplyResult, ()>>;
/// The position that a reader has to have applied; `None` if unknown.
pub(super) type Confirmed = Option<usize>;
