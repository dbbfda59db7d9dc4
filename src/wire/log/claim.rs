//! Claims and what became of the post.

use super::pb;
use super::pb::post_outcome::Variant;
use super::stored::{Stored, named, numbered, required, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::claim::{Claim, PostOutcome, Reason};
use crate::machine::time::Timestamp;

impl Stored for Claim {
    type Message = pb::Claim;

    fn store(&self) -> pb::Claim {
        pb::Claim {
            attempt: self.attempt.store(),
            approver: self.approver.store(),
            reason: self.reason.store(),
            at_unix_ms: self.at.store(),
            until_unix_ms: self.until.store(),
            recorded: self.outcome.store(),
        }
    }

    fn restore(message: pb::Claim) -> Result<Self, Undecodable> {
        Ok(Self {
            attempt: take!(message.attempt),
            approver: take!(message.approver),
            reason: take!(message.reason),
            at: take!(message.at_unix_ms),
            until: take!(message.until_unix_ms),
            outcome: take!(message.recorded),
        })
    }
}

numbered!(Reason as ClaimReason { Prepared, NothingToPrepare, BudgetSpent, Policy, Takeover, Operator });

impl Stored for (PostOutcome, Timestamp) {
    type Message = pb::Recorded;

    fn store(&self) -> pb::Recorded {
        let (outcome, at) = self;
        pb::Recorded { outcome: Some(outcome.store()), at_unix_ms: at.store() }
    }

    fn restore(message: pb::Recorded) -> Result<Self, Undecodable> {
        Ok((take!(required message.outcome), take!(message.at_unix_ms)))
    }
}

impl Stored for PostOutcome {
    type Message = pb::PostOutcome;

    fn store(&self) -> pb::PostOutcome {
        let variant = match self {
            Self::Accepted => Variant::Accepted(pb::Nothing {}),
            Self::Refused(status) => Variant::Refused(status.store()),
            Self::NotSent(reason) => Variant::NotSent(reason.clone()),
            Self::Unknown(reason) => Variant::Unknown(reason.clone()),
            Self::Withdrawn => Variant::Withdrawn(pb::Nothing {}),
        };
        pb::PostOutcome { variant: Some(variant) }
    }

    fn restore(message: pb::PostOutcome) -> Result<Self, Undecodable> {
        Ok(match message.variant.ok_or(Fault::UnknownVariant)? {
            Variant::Accepted(pb::Nothing {}) => Self::Accepted,
            Variant::Refused(status) => Self::Refused(named(u16::restore(status), "refused")?),
            Variant::NotSent(reason) => Self::NotSent(reason),
            Variant::Unknown(reason) => Self::Unknown(reason),
            Variant::Withdrawn(pb::Nothing {}) => Self::Withdrawn,
        })
    }
}
