//! Posts one approval, as `replica::post`: a fresh document, a round trip to a quorum, the post.

use allclear_core::schedule::claims;
use std::time::Duration;

use super::ModelContext;
use crate::endpoint::Why;
use crate::scenario::TriggerPoint;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::{Command, RecordPost};
use allclear_core::model::document::Document;
use allclear_core::model::id::{AttemptId, EventId};
use allclear_core::model::time::Timestamp;

const CONFIRM_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) struct ModelClaim {
    pub(super) event: EventId,
    pub(super) claim: AttemptId,
    /// On the steady clock.
    pub(super) seen_at: Timestamp,
    /// From then on.
    pub(super) lease: Duration,
    pub(super) is_inherited: bool,
}

pub(super) async fn post(here: ModelContext, claimed: ModelClaim) {
    let outcome = if claimed.is_inherited {
        Some(PostOutcome::Unknown("this replica was restarted and cannot tell whether it had posted".into()))
    } else {
        act(&here, &claimed).await
    };
    let ModelClaim { event, claim, .. } = claimed;
    if let Some(outcome) = outcome {
        here.record(&Command::RecordPost(RecordPost { event, attempt: claim, outcome })).await;
    }
}

/// `None` when the claim lapsed or was given to another.
async fn act(here: &ModelContext, claimed: &ModelClaim) -> Option<PostOutcome> {
    let mistake = here.world.mistake;
    let document = match here.look().await {
        _ if makes!(mistake, DocumentNotFresh) => None,
        Ok(document) => Some(document),
        Err(_) => return Some(PostOutcome::NotSent("no fresh document".into())),
    };
    here.world.come(&here.world.counts.confirmed, TriggerPoint::Confirm);
    while !makes!(mistake, PostUnconfirmed) && here.confirm().await.is_err() {
        if !is_ours(here, claimed) {
            return None;
        }
        here.sleep(CONFIRM_AGAIN_AFTER).await;
    }
    let withdrawn =
        |document: &Document| claims::withdrawn_by(&here.state(), here.name(), &claimed.event, claimed.claim, document);
    let is_minded = |outcome: &PostOutcome| !makes!(mistake, DecisionUnchecked) || *outcome != PostOutcome::Differs;
    if let Some(withdrawn) = document.as_ref().and_then(withdrawn).filter(is_minded) {
        return Some(withdrawn);
    }
    if !is_ours(here, claimed) {
        return None;
    }
    Some(here.post_approval(&claimed.event, Why::Claim(claimed.claim)).await)
}

/// The claim is in force as far as this replica has applied, and its lease is not over.
fn is_ours(here: &ModelContext, claimed: &ModelClaim) -> bool {
    let state = here.state();
    let open = state.open_event(&claimed.event).and_then(|event| event.open_claim());
    let is_in_time = here.steady().since(claimed.seen_at) < claimed.lease;
    open.is_some_and(|open| open.attempt == claimed.claim && open.approver == *here.name())
        && (is_in_time || makes!(here.world.mistake, LeaseUnchecked))
}
