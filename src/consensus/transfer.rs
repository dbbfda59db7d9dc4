//! Handing leadership over, to a voter that is up to date and answers.

use std::time::Duration;

use openraft::rt::WatchReceiver as _;
use openraft::{Instant as _, RaftMetrics};
use tokio::time::{Instant, timeout_at};

use super::failure::TransferError;
use super::node::Node;
use super::types::Types;

/// Long enough for a transfer that fails and the election that follows.
const WITHIN: Duration = Duration::from_secs(2);

impl Node {
    pub(crate) async fn transfer_leadership(&self, to: &str) -> Result<(), TransferError> {
        let deadline = Instant::now() + WITHIN;
        let target = self.successor(to)?;
        if target == self.identity.node {
            return Ok(());
        }
        // It may lag by a moment; one that lags longer would only leave everybody without a leader.
        if !self.metrics_show(deadline, |metrics| self.ready(metrics, target)).await? {
            return Err(TransferError::NotReady(to.into()));
        }
        self.raft.trigger().transfer_leader(target).await.map_err(|why| TransferError::Fatal(why.to_string()))?;
        if self.metrics_show(deadline, |metrics| metrics.current_leader == Some(target)).await? {
            Ok(())
        } else {
            Err(TransferError::Late(to.into()))
        }
    }

    fn successor(&self, to: &str) -> Result<u64, TransferError> {
        if !self.raft.is_leader() {
            return Err(TransferError::NotLeader(self.leader().map(|(_, member)| member.replica)));
        }
        let membership = self.membership();
        let named = |node: &u64| membership.get_node(node).is_some_and(|member| member.replica == to);
        let target = membership.voter_ids().find(named);
        target.ok_or_else(|| TransferError::NoVoter(to.into()))
    }

    /// It holds all that is committed, and answered within the lease.
    fn ready(&self, metrics: &RaftMetrics<Types>, target: u64) -> bool {
        let matched = metrics.replication.as_ref().and_then(|all| all.get(&target).copied().flatten());
        let acked = metrics.heartbeat.as_ref().and_then(|all| all.get(&target).copied().flatten());
        let lease = self.options.timing.lease();
        matched >= metrics.cluster_committed && acked.is_some_and(|acked| acked.elapsed() < lease)
    }

    /// Whether it came to show in time.
    async fn metrics_show(
        &self,
        deadline: Instant,
        holds: impl Fn(&RaftMetrics<Types>) -> bool,
    ) -> Result<bool, TransferError> {
        let mut metrics = self.raft.metrics();
        while !holds(&metrics.borrow_watched()) {
            match timeout_at(deadline, metrics.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(TransferError::Fatal(self.stopped().unwrap_or_default())),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}
