//! The approval of a claimed event: a fresh document, a confirmation by a quorum, and the post. A failed step becomes
//! the outcome of the claim, so that the leader names another approver without delay.

use super::{Host, PostReason};
use crate::model::claim::{Claim, PostOutcome, Reason};
use crate::model::command::bounded;
use crate::model::document::Document;
use crate::model::event::Event;
use crate::model::id::{AttemptId, EventId};
use crate::model::time::Timestamp;
use crate::schedule::claims;
use alloc::format;
use core::time::Duration;

/// The pause after a failed confirmation.
const CONFIRM_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A claim that names this replica as the approver.
#[derive(Clone, Debug)]
pub struct OwnClaim {
    pub event: EventId,
    pub attempt: AttemptId,
    pub reason: Reason,
    /// The approval may go through the control plane.
    pub is_last_resort: bool,
    /// When the event was first seen, in cluster time.
    pub event_since: Timestamp,
    /// When this replica saw the claim, on the monotonic clock.
    pub seen_at: Timestamp,
    /// How long the claim is valid after `seen_at`.
    pub lease: Duration,
    /// A previous run of this replica may have posted the approval.
    pub is_left_over: bool,
}

impl OwnClaim {
    pub(super) fn new(event: &Event, claim: &Claim, seen_at: Timestamp, is_left_over: bool) -> Self {
        Self {
            event: event.announcement.id.clone(),
            attempt: claim.attempt,
            reason: claim.reason,
            is_last_resort: claim.is_last_resort,
            event_since: event.first_seen(),
            seen_at,
            lease: claim.until.since(claim.at),
            is_left_over,
        }
    }
}

/// Requirements of an approver for the host, beside [`Host`].
#[allow(async_fn_in_trait, reason = "as in `Host`")]
pub trait ApprovalHost: Host {
    /// True once a quorum has confirmed that `state` was current after this call.
    async fn ensure_state_is_current(&self) -> bool {
        self.ensure_linearizable().await
    }

    /// The outcome of the claim if a fresh document forbids the post (`SPEC.md` 6.6).
    fn reason_not_to_post(&self, claim: &OwnClaim, fresh: &Document) -> Option<PostOutcome> {
        claims::outcome_without_post(&self.state(), self.name(), &claim.event, claim.attempt, fresh)
    }
}

/// Posts the approval of a claim and returns its outcome. `None` if the claim expired or another replica has the claim:
/// then nothing was sent.
pub async fn approve<H: ApprovalHost>(host: &H, claim: &OwnClaim) -> Option<PostOutcome> {
    if claim.is_left_over {
        return Some(PostOutcome::Unknown("this replica was restarted, so the outcome of the post is unknown".into()));
    }
    let document = match host.fresh_document().await {
        Ok(document) => Some(document),
        Err(_) if claim.is_last_resort => None,
        Err(why) => return Some(PostOutcome::NotSent(bounded(&format!("no fresh document: {why}")))),
    };
    while !host.ensure_state_is_current().await {
        if !claim_is_still_own(host, claim) {
            return None;
        }
        host.sleep(CONFIRM_AGAIN_AFTER).await;
    }
    if let Some(withdrawn) = document.as_ref().and_then(|document| host.reason_not_to_post(claim, document)) {
        return Some(withdrawn);
    }
    // The platform may have paused this machine since the confirmation. The lease bounds the age of the confirmation.
    if !claim_is_still_own(host, claim) {
        return None;
    }
    let left = claim.lease.saturating_sub(host.monotonic().since(claim.seen_at));
    let Some(document) = document else {
        return Some(host.post(&claim.event, PostReason::LastResort(claim.attempt), left).await);
    };
    let listed = document.get(&claim.event).map_or(&claim.event, |announced| &announced.id);
    Some(host.post(listed, PostReason::Claim(claim.attempt), left).await)
}

/// True while the state has this claim for this replica and the lease lasts.
fn claim_is_still_own<H: Host>(host: &H, claim: &OwnClaim) -> bool {
    let state = host.state();
    let open = state.open_event(&claim.event).and_then(|event| event.open_claim());
    open.is_some_and(|open| open.attempt == claim.attempt && open.approver == *host.name())
        && host.monotonic().since(claim.seen_at) < claim.lease
}
