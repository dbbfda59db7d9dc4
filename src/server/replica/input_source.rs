//! Makes the planning input from the cluster handle, the health of peers, and the isolation of this replica.

use std::sync::Arc;

use tokio::sync::watch;

use super::clock;
use super::cluster::ClusterHandle;
use super::peer_tracker::PeerTracker;
use crate::consensus::RaftStatus;
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::IsolatedView;
use allclear_core::model::time::Timestamp;
use allclear_core::planning_input::{LeaderState, PlanningInput};

/// The knowledge of this replica beside the log: the health of the peers, and the replica's own isolation.
pub struct InputSource {
    pub cluster: Arc<ClusterHandle>,
    pub peers: PeerTracker,
    /// `None` while this replica follows a leader.
    pub isolated: watch::Sender<Option<IsolatedView>>,
}

impl InputSource {
    /// `version` is the cluster version known to this program.
    pub fn new(cluster: Arc<ClusterHandle>, version: u64) -> Self {
        let peers = PeerTracker::new(cluster.node.name.clone(), version);
        Self { cluster, peers, isolated: watch::Sender::new(None) }
    }

    pub fn planning_input(&self) -> PlanningInput {
        let status = self.cluster.consensus.status().borrow().clone();
        self.planning_input_at(&status)
    }

    /// Uses a single read of the status: a second read while the first is held would wait for ever beside a change of
    /// status.
    pub(super) fn planning_input_at(&self, status: &RaftStatus) -> PlanningInput {
        let cluster = &self.cluster;
        let members = cluster.members();
        let isolated = self.isolated_view(status);
        PlanningInput {
            now: cluster.time.now(),
            me: cluster.node.name.clone(),
            learners: cluster.consensus.members().learners.iter().map(|name| VmName::new(name)).collect(),
            peers: self.peers.of(&members, |steady| cluster.at(steady)),
            versions: self.peers.versions(),
            members,
            quorum: status.quorum,
            leading_since: self.peers.leading_since().map_or(Timestamp(i64::MIN), |at| cluster.at(at)),
            leader: self.leader_state(status),
            isolated,
            policy: cluster.node.policy.clone(),
            timing: cluster.node.timing,
        }
    }

    /// This replica's observations since the loss of the leader. With a leader the log knows more: earlier observations
    /// would override present reports of other replicas.
    pub(super) fn isolated_view(&self, status: &RaftStatus) -> Option<IsolatedView> {
        if status.quorum { None } else { self.isolated.borrow().clone() }
    }

    fn leader_state(&self, status: &RaftStatus) -> Option<LeaderState> {
        let cluster = &self.cluster;
        let acknowledged = cluster.consensus.acknowledged().into_iter();
        let acknowledged = acknowledged.map(|(name, at)| (VmName::new(&name), cluster.at(clock::to_monotonic(at))));
        status.leads().then(|| LeaderState {
            term: status.term,
            turn: status.turn,
            voters: cluster.consensus.members().voters.iter().map(|name| VmName::new(name)).collect(),
            acknowledged: acknowledged.collect(),
        })
    }
}
