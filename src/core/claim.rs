//! Claims: the decision that an event is to be approved, by whom, why, and what became of the post.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::document::{Document, Status};
use super::event::Event;
use super::id::{AttemptId, EventId, VmName};
use super::lifecycle::Stage;
use super::state::State;
use super::time::Timestamp;

use super::workload::Member;

/// So many claims of one event that were withdrawn because the documents differed do not look like an accident.
pub const DIFFERS_TOO_OFTEN: usize = 2;
/// The pause before an event is claimed again is a second, doubled with each claim, up to this.
pub(super) const CLAIM_AGAIN_AFTER_AT_MOST: Duration = Duration::from_secs(5);
/// So many claims in vain do not look like an accident: the next ones are further apart, so that a notice of days does
/// not fill the state.
const CLAIMS_IN_VAIN: usize = 20;
const CLAIM_AGAIN_AFTER_MANY: Duration = Duration::from_mins(1);

/// The committed decision that an event is to be approved, and by whom.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    pub attempt: AttemptId,
    pub approver: VmName,
    pub reason: Reason,
    /// What of the event was decided: its `decision` as it was claimed.
    pub decision: u64,
    /// The stints of its members' slots in which they were prepared.
    pub stints: Vec<(Member, u64)>,
    pub at: Timestamp,
    /// From here on another approver may be named.
    pub until: Timestamp,
    pub outcome: Option<(PostOutcome, Timestamp)>,
}

impl Claim {
    pub fn outcome_is(&self, outcome: &PostOutcome) -> bool {
        self.outcome.as_ref().is_some_and(|(found, _)| found == outcome)
    }

    /// The platform may have been told.
    pub fn may_be_posted(&self) -> bool {
        self.outcome.as_ref().is_none_or(|(outcome, _)| outcome.may_have_arrived())
    }
}

impl Event {
    /// From when on the event may be claimed once more; `None` when it was not claimed yet.
    pub fn claimed_again_from(&self) -> Option<Timestamp> {
        let last = self.claims.last()?;
        let count = |outcome: &PostOutcome| self.claims.iter().filter(|claim| claim.outcome_is(outcome)).count();
        if self.stage() == Stage::Approved {
            // Somebody else may have to approve it, too, or the platform has lost it.
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
            pause_after(self.claims.len())
        };
        Some(at.plus(pause))
    }

    /// The reason for which what was decided is posted once more: an approval that was accepted and may be lost, or one
    /// of which nobody knows whether it arrived. Never one for something else than the event is now.
    pub fn reason_to_repeat(&self) -> Option<Reason> {
        let posted = self.claims.iter().rev().find(|claim| claim.may_be_posted());
        posted.filter(|claim| claim.decision == self.decision).map(|claim| claim.reason)
    }

    /// Another replica, or nobody, will act on the last claim.
    pub fn is_claim_settled(&self, now: Timestamp) -> bool {
        self.claims.last().is_none_or(|claim| claim.outcome.is_some() || claim.until <= now)
    }
}

/// What becomes of a claim by a fresh document of its approver; `None` where it may be posted (`members.md` 2.1).
pub fn withdrawn_by(
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
    (claim.decision != event.decision || !is_it).then_some(PostOutcome::Differs)
}

fn pause_after(claims: usize) -> Duration {
    if claims >= CLAIMS_IN_VAIN {
        return CLAIM_AGAIN_AFTER_MANY;
    }
    let doublings = u32::try_from(claims.saturating_sub(1)).unwrap_or(u32::MAX).min(3);
    (Duration::from_secs(1) * (1 << doublings)).min(CLAIM_AGAIN_AFTER_AT_MOST)
}

/// Why the event may start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// Every hook is settled in the event's favour.
    Prepared,
    NothingToPrepare,
    BudgetSpent,
    Policy,
    /// A replica without a quorum decided it, and its post may not have arrived.
    Takeover,
    /// An operator overruled what was left of its preparation.
    Operator,
}

words!(Reason {
    Prepared => "prepared",
    NothingToPrepare => "nothing_to_prepare",
    BudgetSpent => "budget_spent",
    Policy => "policy",
    Takeover => "takeover",
    Operator => "operator",
});

/// What became of a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PostOutcome {
    /// The platform took it: final.
    Accepted,
    /// The platform answered with this HTTP status.
    Refused(u16),
    /// It did not leave this machine.
    NotSent(String),
    /// Sent, and no reply.
    Unknown(String),
    /// Not posted: a fresh document showed the event as started or did not list it.
    Withdrawn,
    /// Not posted: with a fresh document the event is not what was decided.
    Differs,
}

impl PostOutcome {
    pub const fn as_word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused(_) => "refused",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Withdrawn => "withdrawn",
            Self::Differs => "views_differ",
        }
    }

    /// The platform may have taken it. A definite answer of the service says that it did not; what fails within it, or
    /// says that its machine is being moved, proves nothing.
    pub const fn may_have_arrived(&self) -> bool {
        match self {
            Self::Accepted | Self::Unknown(_) | Self::Refused(410 | 500..) => true,
            Self::Refused(_) | Self::NotSent(_) | Self::Withdrawn | Self::Differs => false,
        }
    }
}
