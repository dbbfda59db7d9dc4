//! When a claim is over, and when the event may be claimed again.

use crate::model::claim::{Claim, PostOutcome, Reason};
use crate::model::document::{Document, Status};
use crate::model::event::Event;
use crate::model::id::{AttemptId, EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use core::time::Duration;

/// Number of claims of one event, withdrawn because the documents differed, from which this does not look like an
/// accident.
pub const DIFFERS_TOO_OFTEN: usize = 2;

/// Upper bound of the pause before an event is claimed again; the pause is a second, doubled with each claim.
pub(crate) const CLAIM_AGAIN_AFTER_AT_MOST: Duration = Duration::from_secs(5);

/// Number of failed claims from which this does not look like an accident: the next claims are further apart, so that a
/// notice of days does not fill the state.
const CLAIMS_IN_VAIN: usize = 20;

/// An accepted approval is not posted once more in the last minute of the notice: the event starts anyway.
pub(crate) const NOT_REPEATED_IN_THE_LAST: Duration = Duration::from_mins(1);

const CLAIM_AGAIN_AFTER_MANY: Duration = Duration::from_mins(1);

impl Event {
    /// Time from which the event may be claimed once more; `None` before the first claim.
    pub fn next_claim_from(&self) -> Option<Timestamp> {
        let last = self.claims.last()?;
        let count = |outcome: &PostOutcome| self.claims.iter().filter(|claim| claim.outcome_is(outcome)).count();
        if self.stage() == Stage::Approved {
            // Another approver may also have to approve the event, or the platform has lost the approval.
            let repost_after = self.treatment.as_ref().map_or(CLAIM_AGAIN_AFTER_MANY, |chosen| chosen.repost_after);
            let pause = repost_after * (1 << count(&PostOutcome::Accepted).saturating_sub(1).min(16));
            let told = self.claims.iter().filter_map(|claim| claim.outcome.as_ref()).map(|(_, at)| *at);
            let from = told.chain(self.entered_at(Stage::Approved)).max()?.plus(pause);
            return Some(if last.outcome.is_none() { from.max(last.until) } else { from });
        }
        let Some((outcome, at)) = &last.outcome else { return Some(last.until) };
        let pause = if *outcome == PostOutcome::Differs && count(outcome) >= DIFFERS_TOO_OFTEN {
            CLAIM_AGAIN_AFTER_MANY
        } else {
            claim_retry_delay(self.claims.len())
        };
        Some(at.plus(pause))
    }

    /// The reason for which a decision is posted once more: an approval that was accepted and may be lost, or an
    /// approval with unknown arrival. Only an approval of the event's present revision is repeated.
    pub fn reason_to_repeat(&self) -> Option<Reason> {
        let posted = self.claims.iter().rev().find(|claim| claim.may_have_been_posted());
        posted.filter(|claim| claim.decided_at_revision == self.decided_at_revision).map(|claim| claim.reason)
    }

    /// When an accepted approval is posted once more if the platform has not started the event by then; `None` when the
    /// notice leaves no time for that.
    pub fn repost_at(&self) -> Option<Timestamp> {
        let at = self.next_claim_from().filter(|_| self.stage() == Stage::Approved)?;
        let is_in_time = at.plus(NOT_REPEATED_IN_THE_LAST) < self.notice_ends();
        self.reason_to_repeat().filter(|_| is_in_time).map(|_| at)
    }

    /// Whether the control plane may receive the approval: once, and never beside an approval that may have arrived.
    pub fn may_use_last_resort(&self) -> bool {
        let was_refused =
            |claim: &Claim| claim.is_last_resort && matches!(claim.outcome, Some((PostOutcome::Refused(_), _)));
        !self.may_have_been_approved() && !self.claims.iter().any(was_refused)
    }

    /// Whether the last claim is over: its approver will not act on it any more.
    pub fn is_claim_over(&self, now: Timestamp) -> bool {
        self.claims.last().is_none_or(|claim| claim.outcome.is_some() || claim.until <= now)
    }
}

/// The outcome of a claim by a fresh document of its approver; `None` if the approval may be posted (`SPEC.md` 6.6).
pub fn outcome_without_post(
    state: &State,
    me: &VmName,
    id: &EventId,
    claim: AttemptId,
    fresh: &Document,
) -> Option<PostOutcome> {
    if fresh.get(id).is_none_or(|announced| announced.status != Status::Scheduled) {
        return Some(PostOutcome::Withdrawn);
    }
    let event = state.open_event(id)?;
    let claim = event.claims.iter().find(|known| known.attempt == claim)?;
    let shown = state.shown_with(id, Some((me, fresh)));
    let is_it = shown.is_some_and(|shown| shown.is_decided_like(&event.announcement));
    (claim.decided_at_revision != event.decided_at_revision || !is_it).then_some(PostOutcome::Differs)
}

fn claim_retry_delay(claims: usize) -> Duration {
    if claims >= CLAIMS_IN_VAIN {
        return CLAIM_AGAIN_AFTER_MANY;
    }
    let doublings = u32::try_from(claims.saturating_sub(1)).unwrap_or(u32::MAX).min(3);
    (Duration::from_secs(1) * (1 << doublings)).min(CLAIM_AGAIN_AFTER_AT_MOST)
}
