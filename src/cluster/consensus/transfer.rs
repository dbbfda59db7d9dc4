//! Transfers leadership to a voter that is up to date and answers.

use std::time::Duration;

use openraft::metrics::WaitError;
use openraft::{Instant as _, RaftMetrics};
use tokio::time::Instant;

use super::failure::RequestError;
use super::node::Consensus;
use super::types::Types;

/// Long enough for a transfer that fails and the election that follows.
const WITHIN: Duration = Duration::from_secs(2);

impl Consensus {
    /// On the leader: transfers leadership to a voter and waits until the voter leads.
    pub async fn transfer_leadership(&self, to: &str) -> Result<(), RequestError> {
        self.transfer_to(Some(to)).await.map(drop)
    }

    /// Transfers leadership to the voter of this name, or to the first other voter that is up to date; returns the new
    /// leader.
    pub(super) async fn transfer_to(&self, to: Option<&str>) -> Result<String, RequestError> {
        self.lead()?;
        let (membership, own) = (self.membership(), self.identity.node);
        let name = |node: u64| membership.get_node(&node).map(|member| member.replica.clone()).unwrap_or_default();
        let heirs = membership.voter_ids().filter(|voter| to.map_or(*voter != own, |to| name(*voter) == to));
        let heirs: Vec<u64> = heirs.collect();
        if heirs.is_empty() {
            let nobody = || "there is no other voter to take over leadership".into();
            return Err(RequestError::Refused(
                to.map_or_else(nobody, |to| format!("{to} is not a voter of this cluster")),
            ));
        }
        if heirs.contains(&own) {
            return Ok(name(own));
        }
        let begun = Instant::now();
        let deadline = begun + WITHIN;
        // At once: an event may wait for the transfer, and the next heartbeat may be a full interval away.
        self.raft.trigger().heartbeat().await.map_err(|why| RequestError::stopped(&why))?;
        // The target may lag for a moment; a target with a longer lag would only leave the cluster without a leader.
        let first_ready =
            |metrics: &RaftMetrics<Types>| heirs.iter().copied().find(|heir| self.ready(metrics, *heir, begun));
        let shown = self.metrics_show(deadline, |metrics| first_ready(metrics).is_some()).await?;
        // Readiness depends on a clock, and is evaluated twice.
        let Some(heir) = shown.map(|metrics| first_ready(&metrics).unwrap_or(heirs[0])) else {
            let names = heirs.into_iter().map(name).collect::<Vec<_>>().join(", ");
            return Err(RequestError::Refused(format!("{names} is not up to date, or does not answer")));
        };
        self.raft.trigger().transfer_leader(heir).await.map_err(|why| RequestError::stopped(&why))?;
        if self.metrics_show(deadline, |metrics| metrics.current_leader == Some(heir)).await?.is_some() {
            Ok(name(heir))
        } else {
            Err(RequestError::Unknown(format!("{} did not take over in time", name(heir))))
        }
    }

    pub(super) fn lead(&self) -> Result<(), RequestError> {
        if self.raft.is_leader() { Ok(()) } else { Err(RequestError::NoLeader) }
    }

    /// True if the target holds all committed entries, and has answered a message sent after `since`: a replica that
    /// died within the lease still looks healthy.
    pub(super) fn ready(&self, metrics: &RaftMetrics<Types>, target: u64, since: Instant) -> bool {
        let matched = metrics.replication.as_ref().and_then(|all| all.get(&target).copied().flatten());
        matched >= metrics.cluster_committed && self.answered(metrics, target, since)
    }

    /// True if the node is this replica, or answered a message sent after `since`.
    pub(super) fn answered(&self, metrics: &RaftMetrics<Types>, node: u64, since: Instant) -> bool {
        let acked = metrics.heartbeat.as_ref().and_then(|all| all.get(&node).copied().flatten());
        let since = since.elapsed();
        node == self.identity.node || acked.is_some_and(|acked| acked.elapsed() <= since)
    }

    /// The first metrics for which `holds` is true, if in time.
    pub(super) async fn metrics_show(
        &self,
        deadline: Instant,
        holds: impl Fn(&RaftMetrics<Types>) -> bool + Send,
    ) -> Result<Option<RaftMetrics<Types>>, RequestError> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.raft.wait(Some(left)).metrics(holds, "").await {
            Ok(metrics) => Ok(Some(metrics)),
            Err(WaitError::Timeout(..)) => Ok(None),
            Err(WaitError::ShuttingDown) => {
                Err(RequestError::Stopped(self.stopped().unwrap_or_else(|| "shut down".into())))
            }
        }
    }
}
