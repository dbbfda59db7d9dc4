//! Claims: the decision that an event is to be approved, by whom, why, and what became of the post.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::id::{AttemptId, VmName};
use super::time::Timestamp;
use super::words::words;
use super::workload::Member;

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

    /// From when on another one may follow this one, the last of so many; never after one that was accepted.
    pub fn again_at(&self, claims: usize) -> Option<Timestamp> {
        match &self.outcome {
            None => Some(self.until),
            Some((PostOutcome::Accepted, _)) => None,
            Some((
                PostOutcome::Refused(_) | PostOutcome::NotSent(_) | PostOutcome::Unknown(_) | PostOutcome::Withdrawn,
                at,
            )) => Some(at.plus(pause_after(claims))),
        }
    }

    /// The platform may have been told.
    pub fn may_be_posted(&self) -> bool {
        matches!(self.outcome, None | Some((PostOutcome::Accepted | PostOutcome::Unknown(_), _)))
    }
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
}

impl PostOutcome {
    pub const fn as_word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused(_) => "refused",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Withdrawn => "withdrawn",
        }
    }
}
