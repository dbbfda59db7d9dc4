//! Posts one approval: takes a fresh document, confirms the claim by a round trip to a quorum, and posts. Whatever
//! comes in between is recorded instead, so that another replica is named without delay.

use allclear_core::schedule::claims;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::clock;
use super::context::Context;
use super::errands::Executor;
use super::metrics::TakeoverLevel;
use crate::imds::Approval;
use allclear_core::model::claim::{PostOutcome, Reason};
use allclear_core::model::command::{Command, RecordPost, bounded};
use allclear_core::model::id::{AttemptId, EventId};
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::time::Timestamp;

/// The pause after a read that no quorum confirmed.
const CONFIRM_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A claim that names this replica.
pub(super) struct OwnClaim {
    pub(super) event: EventId,
    pub(super) claim: AttemptId,
    pub(super) reason: Reason,
    /// When the event was seen first.
    pub(super) event_since: Timestamp,
    /// On the steady clock.
    pub(super) seen_at: Timestamp,
    /// From then on.
    pub(super) lease: Duration,
    /// An earlier life of this replica may have posted it.
    pub(super) is_inherited: bool,
}

/// Returns when the outcome is in the log, or when the claim is no longer this replica's to act on.
pub(super) async fn post(hands: Arc<Executor>, claimed: OwnClaim, stop: CancellationToken) {
    let outcome = if claimed.is_inherited {
        Some(PostOutcome::Unknown("this replica was restarted and cannot tell whether it had posted".into()))
    } else {
        act(&hands, &claimed, &stop).await
    };
    let OwnClaim { event, claim, reason, event_since, .. } = claimed;
    let Some(outcome) = outcome else {
        tracing::info!(%event, %claim, "the claim lapsed before anything was posted");
        return;
    };
    tracing::info!(%event, %claim, outcome = outcome.as_word(), "what became of the claim");
    count(&hands.here, reason, &outcome, event_since);
    hands.here.record(&Command::RecordPost(RecordPost { event, attempt: claim, outcome })).await;
}

fn count(here: &Context, reason: Reason, outcome: &PostOutcome, event_since: Timestamp) {
    here.deeds.approval(reason, outcome, Some(here.time.now().since(event_since)));
    let leader = here.state().leadership.as_ref().map(|known| known.by.clone()).filter(|leader| *leader != here.name);
    let contacts = here.contacts.of(leader.as_slice(), |at| at);
    if contacts.values().any(|leader| leader.channel == ImdsHealth::Stalled) {
        here.deeds.takeover(TakeoverLevel::ChannelStalled);
    }
}

/// `None` when the claim lapsed or was given to another; nothing was sent then, and nothing is.
async fn act(hands: &Executor, claimed: &OwnClaim, stop: &CancellationToken) -> Option<PostOutcome> {
    let document = match stop.run_until_cancelled(hands.observer.fetch_now(&hands.here.state())).await {
        Some(Ok(document)) => document,
        Some(Err(why)) => return Some(PostOutcome::NotSent(bounded(&format!("no fresh document: {why}")))),
        None => return Some(PostOutcome::NotSent("this replica stops".into())),
    };
    while hands.here.consensus.ensure_linearizable().await.is_err() {
        if !is_ours(hands, claimed) {
            return None;
        }
        tokio::time::sleep(CONFIRM_AGAIN_AFTER).await;
    }
    let (state, me) = (hands.here.state(), &hands.here.name);
    if let Some(withdrawn) = claims::withdrawn_by(&state, me, &claimed.event, claimed.claim, &document) {
        return Some(withdrawn);
    }
    // The hypervisor stops us, too: what was confirmed before a pause is old, and the lease tells.
    let announced = document.get(&claimed.event)?;
    if is_ours(hands, claimed) { Some(outcome(hands.observer.approve(&announced.id).await)) } else { None }
}

/// The claim is in force as far as this replica has applied, and its lease is not over.
fn is_ours(hands: &Executor, claimed: &OwnClaim) -> bool {
    let state = hands.here.state();
    let open = state.open_event(&claimed.event).and_then(|event| event.open_claim());
    open.is_some_and(|open| open.attempt == claimed.claim && open.approver == hands.here.name)
        && clock::monotonic().since(claimed.seen_at) < claimed.lease
}

pub(super) fn outcome(approval: Approval) -> PostOutcome {
    match approval {
        Approval::Accepted => PostOutcome::Accepted,
        Approval::Refused(status) => PostOutcome::Refused(status),
        Approval::NotSent(why) => PostOutcome::NotSent(bounded(&why.to_string())),
        Approval::Unknown(why) => PostOutcome::Unknown(bounded(&why.to_string())),
    }
}
