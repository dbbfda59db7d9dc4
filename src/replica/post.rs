//! Posts one approval: confirms the claim, takes a fresh document, posts, and records what became of it.

use std::sync::Arc;
use std::time::Duration;

use super::clock;
use super::errands::Hands;
use crate::machine::claim::PostOutcome;
use crate::machine::command::{Command, bounded};
use crate::machine::document::Status;
use crate::machine::id::{AttemptId, EventId};
use crate::metadata::{Approval, NoInformation};

/// The pause after an attempt to confirm the claim, or to see the event, that told nothing.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Returns when the outcome is in the log, or when the claim is no longer this replica's to act on.
pub(super) async fn post(hands: Arc<Hands>, event: EventId, claim: AttemptId) {
    let Some(outcome) = act(&hands, &event, claim).await else {
        return;
    };
    tracing::info!(%event, %claim, outcome = outcome.as_word(), "the approval was posted");
    hands.here.record(&Command::Posted { event, attempt: claim, outcome }).await;
}

/// `None` when the claim lapsed or was given to another before anything was sent.
async fn act(hands: &Hands, event: &EventId, claim: AttemptId) -> Option<PostOutcome> {
    let lease = hands.here.timing.claim_lease;
    loop {
        // A pause between here and the post (the hypervisor stops us, too) makes what was confirmed old.
        let asked_at = clock::steady();
        if hands.here.consensus.confirm().await.is_err() {
            if !is_current(hands, event, claim) {
                return None;
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
            continue;
        }
        if !is_current(hands, event, claim) {
            return None;
        }
        let document = match hands.observer.look().await {
            Ok(document) => document,
            Err(why) => {
                if why != NoInformation::GaveWay {
                    tracing::warn!(%event, %why, "no fresh document before the post");
                }
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
                continue;
            }
        };
        let Some(announced) = document.get(event).filter(|announced| announced.status == Status::Scheduled) else {
            return Some(PostOutcome::Withdrawn);
        };
        if clock::steady().since(asked_at) < lease {
            return Some(outcome(hands.observer.approve(&announced.id).await));
        }
    }
}

fn is_current(hands: &Hands, event: &EventId, claim: AttemptId) -> bool {
    let state = hands.here.state();
    let open = state.open.get(event).and_then(|event| event.open_claim());
    open.is_some_and(|open| open.attempt == claim && open.approver == hands.here.name)
}

fn outcome(approval: Approval) -> PostOutcome {
    match approval {
        Approval::Accepted => PostOutcome::Accepted,
        Approval::Refused(status) => PostOutcome::Refused(status),
        Approval::NotSent(why) => PostOutcome::NotSent(bounded(&why.to_string())),
        Approval::Unknown(why) => PostOutcome::Unknown(bounded(&why.to_string())),
    }
}
