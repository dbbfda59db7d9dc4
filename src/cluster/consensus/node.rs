//! The parts of one replica's consensus, shared by the files of this module.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use openraft::rt::WatchReceiver as _;
use openraft::{Raft, RaftMetrics};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::disk::Disk;
use super::failure::RequestError;
use super::join_requests::JoinRequests;
use super::options::{Options, RaftTiming};
use super::peers::Peers;
use super::quorum_epochs::QuorumEpochs;
use super::raft_status::RaftStatus;
use super::single_flight::SingleFlight;
use super::start::Start;
use super::state_machine_store::StateMachineStore;
use super::term_check::OwnTerm;
use super::types::{Membership, RaftMember, RaftVote, SharedStateMachine, Types};
use super::vouches::Vouches;
use allclear_wire::pb::allclear::raft::v1::{Destination, Identity};

/// A handle on this replica's consensus; cheap to clone.
#[derive(Clone)]
pub struct Consensus(Arc<Parts>);

/// The parts shared by the handle, the services and the background tasks.
pub struct Parts {
    pub(super) raft: Raft<Types, StateMachineStore>,
    pub(super) identity: Identity,
    pub(super) options: Options,
    pub(super) peers: Arc<Peers>,
    pub(super) state_machine: SharedStateMachine,
    /// The index up to which everything is applied and published.
    pub(super) published: watch::Receiver<Option<u64>>,
    pub(super) start: Start,
    /// When a leader was last heard.
    pub(super) heard: watch::Sender<Option<Instant>>,
    /// The reason why this replica takes no part; `None` while this replica takes part.
    pub(super) outside: watch::Sender<Option<String>>,
    /// A description of the leader's data that this program cannot read, while the leader sends such data.
    pub(super) unreadable: watch::Sender<Option<String>>,
    pub(super) status: watch::Sender<RaftStatus>,
    pub(super) turns: Mutex<QuorumEpochs>,
    /// For reads of the log, as long as the disk is in use.
    pub(super) disk: Weak<Disk>,
    pub(super) confirming: SingleFlight<Result<u64, RequestError>>,
    pub(super) askers: JoinRequests,
    pub(super) words: Vouches,
    pub(super) term: OwnTerm,
    /// Locked during a change of the membership: one change at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
    pub(super) stop: CancellationToken,
    /// Closes when the data directory is free again.
    pub(super) let_go: watch::Receiver<()>,
}

impl Deref for Consensus {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Consensus {
    pub(super) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Rejects a call for another cluster, another replica, or this replica's lost disk.
    pub(super) fn admit(&self, to: Option<&Destination>) -> Result<(), Status> {
        let own = &self.identity;
        match to {
            Some(to) if to.cluster == own.cluster && to.node == own.node => Ok(()),
            Some(to) => Err(Status::failed_precondition(format!(
                "this is replica {} of cluster {}, node {:x}; the call was for node {:x} of cluster {}",
                own.replica, own.cluster, own.node, to.node, to.cluster
            ))),
            None => Err(Status::invalid_argument("the call names no addressee")),
        }
    }

    pub(super) fn turns(&self) -> MutexGuard<'_, QuorumEpochs> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn heard_leader(&self) {
        self.heard.send_replace(Some(Instant::now()));
    }

    /// True if the vote belongs to the leader of this replica.
    pub(super) fn follows(&self, vote: &RaftVote) -> bool {
        let leader = vote.leader_id;
        self.with_metrics(|metrics| {
            (metrics.current_term, metrics.current_leader) == (leader.term, Some(leader.voted_for))
        })
    }

    /// An accepted message was readable. Once all committed entries are in the log, no unreadable entry is left.
    pub(super) fn has_read_up_to(&self, committed: Option<u64>) {
        let last = self.with_metrics(|metrics| metrics.last_log_index);
        self.unreadable.send_if_modified(|reason| committed <= last && reason.take().is_some());
    }

    pub(super) fn with_metrics<R>(&self, read: impl FnOnce(&RaftMetrics<Types>) -> R) -> R {
        read(&self.raft.metrics().borrow_watched())
    }

    pub(super) fn membership(&self) -> Membership {
        self.with_metrics(|metrics| metrics.membership_config.membership().clone())
    }

    /// The leader, as believed by this replica.
    pub(super) fn leader(&self) -> Option<(u64, RaftMember)> {
        self.with_metrics(|metrics| {
            let node = metrics.current_leader?;
            Some((node, metrics.membership_config.get_node(&node)?.clone()))
        })
    }

    /// The reason why consensus stopped; `None` while consensus runs.
    pub(super) fn stopped(&self) -> Option<String> {
        self.with_metrics(|metrics| metrics.running_state.as_ref().err().map(ToString::to_string))
    }

    pub(super) fn destination(&self, node: u64) -> Destination {
        Destination { cluster: self.identity.cluster.clone(), node }
    }
}

impl RaftTiming {
    /// The lease: a leader without a quorum's acknowledgement for this long leads no replica.
    pub(super) fn lease(&self) -> Duration {
        self.election_timeout.1
    }
}
