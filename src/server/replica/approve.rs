//! Approves a claimed event by the core's procedure and records the outcome.

use super::host::ReplicaHost;
use super::metrics::TakeoverLevel;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::{Command, RecordPost};
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::procedure::approval::{ApprovalHost, OwnClaim, approve};

impl ApprovalHost for ReplicaHost {}

/// Returns when the outcome is in the log, or when this replica no longer holds the claim.
pub(super) async fn run(host: ReplicaHost, claim: OwnClaim) {
    let outcome = approve(&host, &claim).await;
    let (event, attempt) = (&claim.event, claim.attempt);
    let Some(outcome) = outcome else {
        tracing::info!(%event, claim = %attempt, "claim expired before the post");
        return;
    };
    tracing::info!(%event, claim = %attempt, outcome = outcome.as_str(), "approval ended");
    count(&host, &claim, &outcome);
    host.cluster.record(&Command::RecordPost(RecordPost { event: claim.event, attempt, outcome })).await;
}

fn count(host: &ReplicaHost, claim: &OwnClaim, outcome: &PostOutcome) {
    let cluster = &host.cluster;
    let waited = cluster.time.now().since(claim.event_since);
    host.metrics.approval(claim.reason, outcome, Some(waited));
    let leader =
        cluster.state().leadership.as_ref().map(|known| known.by.clone()).filter(|leader| *leader != cluster.node.name);
    let contacts = host.inputs.peers.of(leader.as_slice(), |at| at);
    if contacts.values().any(|leader| leader.imds == ImdsHealth::Stalled) {
        host.metrics.takeover(TakeoverLevel::ChannelStalled);
    }
}
