//! Handing leadership over, to a voter that is up to date and answers.

use std::time::Duration;

use openraft::rt::WatchReceiver as _;
use openraft::{Instant as _, RaftMetrics};
use tokio::time::timeout;

use super::failure::TransferError;
use super::node::Node;
use super::types::Types;

/// Long enough for a transfer that fails and the election that follows.
const WITHIN: Duration = Duration::from_secs(2);

impl Node {
    pub(crate) async fn transfer_leadership(&self, to: &str) -> Result<(), TransferError> {
        let target = self.successor(to)?;
        if target == self.identity.node {
            return Ok(());
        }
        self.raft.trigger().transfer_leader(target).await.map_err(|why| TransferError::Fatal(why.to_string()))?;
        let mut metrics = self.raft.metrics();
        let taken_over = async {
            while metrics.borrow_watched().current_leader != Some(target) {
                if metrics.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        match timeout(WITHIN, taken_over).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(TransferError::Fatal(self.stopped().unwrap_or_default())),
            Err(_) => Err(TransferError::Late(to.into())),
        }
    }

    fn successor(&self, to: &str) -> Result<u64, TransferError> {
        if !self.raft.is_leader() {
            return Err(TransferError::NotLeader(self.leader().map(|(_, member)| member.replica)));
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = &metrics.membership_config;
        let mut voters = membership.voter_ids();
        let named = |node: &u64| membership.get_node(node).is_some_and(|member| member.replica == to);
        let target = voters.find(named).ok_or_else(|| TransferError::NoVoter(to.into()))?;
        if target == self.identity.node || self.ready(&metrics, target) {
            Ok(target)
        } else {
            Err(TransferError::NotReady(to.into()))
        }
    }

    /// It holds all that is committed, and answered within the lease.
    fn ready(&self, metrics: &RaftMetrics<Types>, target: u64) -> bool {
        let matched = metrics.replication.as_ref().and_then(|all| all.get(&target).copied().flatten());
        let acked = metrics.heartbeat.as_ref().and_then(|all| all.get(&target).copied().flatten());
        let lease = self.options.timing.lease();
        matched >= metrics.cluster_committed && acked.is_some_and(|acked| acked.elapsed() < lease)
    }
}
