//! Handing leadership over, to a voter that is up to date and answers.

use std::time::Duration;

use openraft::rt::WatchReceiver as _;
use openraft::{Instant as _, RaftMetrics};
use tokio::time::{Instant, timeout_at};

use super::failure::AskError;
use super::node::Consensus;
use super::types::Types;

/// Long enough for a transfer that fails and the election that follows.
const WITHIN: Duration = Duration::from_secs(2);

impl Consensus {
    /// On the leader: hands leadership to a voter and waits until it leads.
    pub async fn transfer_leadership(&self, to: &str) -> Result<(), AskError> {
        let target = self.successor(to)?;
        if target == self.identity.node {
            return Ok(());
        }
        let begun = self.ask_who_answers().await?;
        let deadline = begun + WITHIN;
        // It may lag by a moment; one that lags longer would only leave everybody without a leader.
        if !self.metrics_show(deadline, |metrics| self.ready(metrics, target, begun)).await? {
            return Err(not_ready(to));
        }
        self.hand_to(to, target, deadline).await
    }

    /// To whichever voter is up to date first; returns who leads now.
    pub(crate) async fn transfer_to_any(&self) -> Result<String, AskError> {
        self.lead()?;
        let begun = self.ask_who_answers().await?;
        let deadline = begun + WITHIN;
        let membership = self.membership();
        let others: Vec<u64> = membership.voter_ids().filter(|voter| *voter != self.identity.node).collect();
        if others.is_empty() {
            return Err(AskError::refused("there is no other voter that leadership could go to"));
        }
        let first_ready =
            |metrics: &RaftMetrics<Types>| others.iter().copied().find(|voter| self.ready(metrics, *voter, begun));
        let name = |node: u64| membership.get_node(&node).map(|member| member.replica.clone()).unwrap_or_default();
        if !self.metrics_show(deadline, |metrics| first_ready(metrics).is_some()).await? {
            return Err(not_ready(&others.into_iter().map(name).collect::<Vec<_>>().join(", ")));
        }
        let target = self.with_metrics(first_ready).unwrap_or(others[0]);
        self.hand_to(&name(target), target, deadline).await.map(|()| name(target))
    }

    /// At once: an event may wait for it, and the next heartbeat may be as far away as two are apart.
    async fn ask_who_answers(&self) -> Result<Instant, AskError> {
        let now = Instant::now();
        self.raft.trigger().heartbeat().await.map_err(AskError::stopped)?;
        Ok(now)
    }

    async fn hand_to(&self, to: &str, target: u64, deadline: Instant) -> Result<(), AskError> {
        self.raft.trigger().transfer_leader(target).await.map_err(AskError::stopped)?;
        if self.metrics_show(deadline, |metrics| metrics.current_leader == Some(target)).await? {
            Ok(())
        } else {
            Err(AskError::Unknown(format!("{to} did not take over in time")))
        }
    }

    fn successor(&self, to: &str) -> Result<u64, AskError> {
        self.lead()?;
        let membership = self.membership();
        let named = |node: &u64| membership.get_node(node).is_some_and(|member| member.replica == to);
        let target = membership.voter_ids().find(named);
        target.ok_or_else(|| AskError::Refused(format!("{to} is no voter of this cluster")))
    }

    pub(super) fn lead(&self) -> Result<(), AskError> {
        if self.raft.is_leader() { Ok(()) } else { Err(AskError::NoLeader) }
    }

    pub(super) fn with_metrics<R>(&self, read: impl FnOnce(&RaftMetrics<Types>) -> R) -> R {
        read(&self.raft.metrics().borrow_watched())
    }

    /// It holds all that is committed, and has answered what was sent after this moment: one that died within the
    /// lease still looks well.
    pub(super) fn ready(&self, metrics: &RaftMetrics<Types>, target: u64, since: Instant) -> bool {
        let matched = metrics.replication.as_ref().and_then(|all| all.get(&target).copied().flatten());
        matched >= metrics.cluster_committed && self.answered(metrics, target, since)
    }

    /// It is this replica, or it answered what was sent after this moment.
    pub(super) fn answered(&self, metrics: &RaftMetrics<Types>, node: u64, since: Instant) -> bool {
        let acked = metrics.heartbeat.as_ref().and_then(|all| all.get(&node).copied().flatten());
        let since = since.elapsed();
        node == self.identity.node || acked.is_some_and(|acked| acked.elapsed() <= since)
    }

    /// Whether it came to show in time.
    pub(super) async fn metrics_show(
        &self,
        deadline: Instant,
        holds: impl Fn(&RaftMetrics<Types>) -> bool,
    ) -> Result<bool, AskError> {
        let mut metrics = self.raft.metrics();
        while !holds(&metrics.borrow_watched()) {
            match timeout_at(deadline, metrics.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(AskError::Stopped(self.stopped().unwrap_or_else(|| "shut down".into()))),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn not_ready(voter: &str) -> AskError {
    AskError::Refused(format!("{voter} is not up to date or does not answer"))
}
