//! Claims: the approver of an event, the reason, and the outcome of the post.

use crate::model::id::{AttemptId, VmName};
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::string::String;
use alloc::vec::Vec;

/// The committed decision to approve an event, with the approver.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    pub attempt: AttemptId,
    pub approver: VmName,
    pub reason: Reason,
    /// The decided revision of the event: `decided_at_revision` at the time of the claim.
    pub decided_at_revision: u64,
    /// The stints of the members' slots in which the members were prepared.
    pub stints: Vec<(Member, u64)>,
    pub at: Timestamp,
    /// The time from which another approver may be named.
    pub until: Timestamp,
    /// No metadata endpoint of the cluster worked: without a fresh document the approval goes through the control plane.
    pub is_last_resort: bool,
    pub outcome: Option<(PostOutcome, Timestamp)>,
}

impl Claim {
    pub fn outcome_is(&self, outcome: &PostOutcome) -> bool {
        self.outcome.as_ref().is_some_and(|(found, _)| found == outcome)
    }

    /// The approval may have been sent to the platform.
    pub fn may_have_been_posted(&self) -> bool {
        self.outcome.as_ref().is_none_or(|(outcome, _)| outcome.may_have_arrived())
    }
}

/// Why the event may start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// Every hook has completed or is waived.
    Prepared,
    NothingToPrepare,
    BudgetSpent,
    Policy,
    /// A replica without a quorum approved the event, and the post may not have arrived.
    IsolatedApproval,
    /// An operator overruled the rest of the event's preparation.
    Operator,
}

string_enum!(Reason {
    Prepared => "prepared",
    NothingToPrepare => "nothing_to_prepare",
    BudgetSpent => "budget_spent",
    Policy => "policy",
    IsolatedApproval => "takeover",
    Operator => "operator",
});

/// The outcome of a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PostOutcome {
    /// The platform accepted the approval: final.
    Accepted,
    /// The platform answered with this HTTP status.
    Refused(u16),
    /// The post did not leave this machine.
    NotSent(String),
    /// Sent, and no reply.
    Unknown(String),
    /// Not posted: a fresh document showed the event as started or did not list it.
    Withdrawn,
    /// Not posted: with a fresh document the event differs from the decision.
    Differs,
}

variant_names!(PostOutcome, as_str, NAMES {
    Self::Accepted => "accepted",
    Self::Refused(_) => "refused",
    Self::NotSent(_) => "not_sent",
    Self::Unknown(_) => "unknown",
    Self::Withdrawn => "withdrawn",
    Self::Differs => "views_differ",
});

impl PostOutcome {
    /// The platform may have accepted the approval. A definite answer of the service rules this out; a failure within
    /// the service, or an answer that the machine is being moved, proves nothing.
    pub const fn may_have_arrived(&self) -> bool {
        match self {
            Self::Accepted | Self::Unknown(_) | Self::Refused(410 | 500..) => true,
            Self::Refused(_) | Self::NotSent(_) | Self::Withdrawn | Self::Differs => false,
        }
    }
}
