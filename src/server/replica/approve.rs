//! Approves a claimed event by the core's procedure and records the outcome.

use super::context::Context;
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
    tracing::info!(%event, claim = %attempt, outcome = outcome.as_word(), "approval ended");
    count(&host.context, &claim, &outcome);
    host.context.record(&Command::RecordPost(RecordPost { event: claim.event, attempt, outcome })).await;
}

fn count(context: &Context, claim: &OwnClaim, outcome: &PostOutcome) {
    let waited = context.time.now().since(claim.event_since);
    context.metrics.approval(claim.reason, outcome, Some(waited));
    let leader =
        context.state().leadership.as_ref().map(|known| known.by.clone()).filter(|leader| *leader != context.node.name);
    let contacts = context.contacts.of(leader.as_slice(), |at| at);
    if contacts.values().any(|leader| leader.channel == ImdsHealth::Stalled) {
        context.metrics.takeover(TakeoverLevel::ChannelStalled);
    }
}
