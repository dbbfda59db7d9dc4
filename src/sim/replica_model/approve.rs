//! Approves a claimed event by the core's procedure and records the outcome, as `approve` of the server's replica.

use super::ModelContext;
use allclear_core::model::command::{Command, RecordPost};
use allclear_core::procedure::approval::{OwnClaim, approve};

pub(super) async fn run(here: ModelContext, claim: OwnClaim) {
    if let Some(outcome) = approve(&here, &claim).await {
        here.record(&Command::RecordPost(RecordPost { event: claim.event, attempt: claim.attempt, outcome })).await;
    }
}
