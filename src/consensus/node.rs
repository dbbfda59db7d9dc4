//! One replica's shared parts: openraft, the way to the others, and what is known about their standing.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use openraft::Raft;
use openraft::rt::WatchReceiver as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::contact::Start;
use super::disk::Disk;
use super::failure::ConfirmError;
use super::options::{Options, Timing};
use super::peers::Peers;
use super::shared::Shared;
use super::standing::Standing;
use super::state::State;
use super::turns::Turns;
use super::types::{Member, Membership, SharedFold, Types};
use crate::wire::pb::allclear::raft::v1::{Destination, Identity};

/// Shared by the door, the services and the background tasks.
#[derive(Clone)]
pub(crate) struct Node(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) raft: Raft<Types, State>,
    pub(crate) identity: Identity,
    pub(crate) options: Options,
    pub(crate) peers: Arc<Peers>,
    pub(crate) fold: SharedFold,
    /// The index up to which everything is applied and published.
    pub(crate) published: watch::Receiver<Option<u64>>,
    /// When a leader was last heard.
    pub(crate) heard: watch::Sender<Option<Instant>>,
    /// Why this replica takes no part, while it does not.
    pub(crate) outside: watch::Sender<Option<String>>,
    pub(crate) standing: watch::Sender<Standing>,
    pub(crate) turns: Mutex<Turns>,
    /// Before openraft's.
    pub(crate) start: Start,
    /// To read the log from, as long as it is in use.
    pub(crate) disk: Weak<Disk>,
    pub(crate) confirming: Shared<Result<u64, ConfirmError>>,
    /// Held by whoever changes the membership: one change at a time.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) stop: CancellationToken,
    /// Closes when the data directory is free again.
    pub(crate) let_go: watch::Receiver<()>,
}

impl Deref for Node {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Node {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Refuses what was meant for another cluster, another replica, or this replica's lost disk.
    pub(crate) fn admit(&self, to: Option<&Destination>) -> Result<(), Status> {
        let own = &self.identity;
        match to {
            Some(to) if to.cluster == own.cluster && to.node == own.node => Ok(()),
            Some(to) => Err(Status::failed_precondition(format!(
                "this is replica {} of cluster {}, node {:x}; the call was for node {:x} of cluster {}",
                own.replica, own.cluster, own.node, to.node, to.cluster
            ))),
            None => Err(Status::invalid_argument("the call does not say whom it is for")),
        }
    }

    pub(crate) fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn heard_leader(&self) {
        self.heard.send_replace(Some(Instant::now()));
    }

    pub(crate) fn membership(&self) -> Membership {
        self.raft.metrics().borrow_watched().membership_config.membership().clone()
    }

    /// Whom this replica believes to lead.
    pub(crate) fn leader(&self) -> Option<(u64, Member)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let node = metrics.current_leader?;
        Some((node, metrics.membership_config.get_node(&node)?.clone()))
    }

    /// Why consensus stopped, if it did.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.raft.metrics().borrow_watched().running_state.as_ref().err().map(ToString::to_string)
    }

    pub(crate) fn destination(&self, node: u64) -> Destination {
        Destination { cluster: self.identity.cluster.clone(), node }
    }
}

impl Timing {
    /// A leader that no quorum acknowledged for this long leads nobody.
    pub(crate) fn lease(&self) -> Duration {
        self.election_timeout.1
    }
}
