//! Claims: the decision that an event is to be approved, by whom, why, and what became of the post.

use alloc::string::String;

use super::id::{AttemptId, VmName};
use super::time::Timestamp;

/// The committed decision that an event is to be approved, and by whom.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    pub attempt: AttemptId,
    pub approver: VmName,
    pub reason: Reason,
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
        matches!(self.outcome, None | Some((PostOutcome::Accepted | PostOutcome::Unknown(_), _)))
    }
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

impl Reason {
    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::NothingToPrepare => "nothing_to_prepare",
            Self::BudgetSpent => "budget_spent",
            Self::Policy => "policy",
            Self::Takeover => "takeover",
            Self::Operator => "operator",
        }
    }
}

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
