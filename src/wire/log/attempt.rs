//! Attempts, their progress and outcomes, and waivers.

use super::pb;
use super::pb::outcome::Variant;
use super::stored::{Stored, named, required, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::attempt::{Attempt, Outcome, Progress, Waiver, WaiverReason};
use crate::machine::time::Timestamp;

impl Stored for Attempt {
    type Message = pb::Attempt;

    fn store(&self) -> pb::Attempt {
        pb::Attempt {
            id: self.id.store(),
            member: Some(self.member.store()),
            hook: Some(self.hook.store()),
            intent: self.intent.store(),
            on: self.on.store(),
            begun_at_unix_ms: self.begun_at.store(),
            deadline_unix_ms: self.deadline.store(),
            progress: self.progress.store(),
            settled: self.outcome.store(),
            late: self.late.store(),
        }
    }

    fn restore(message: pb::Attempt) -> Result<Self, Undecodable> {
        Ok(Self {
            id: take!(message.id),
            member: take!(required message.member),
            hook: take!(required message.hook),
            intent: take!(message.intent),
            on: take!(message.on),
            begun_at: take!(message.begun_at_unix_ms),
            deadline: take!(message.deadline_unix_ms),
            progress: take!(message.progress),
            outcome: take!(message.settled),
            late: take!(message.late),
        })
    }
}

impl Stored for Progress {
    type Message = pb::Progress;

    fn store(&self) -> pb::Progress {
        pb::Progress { text: self.text.clone(), expected_end_unix_ms: self.expected_end.store() }
    }

    fn restore(message: pb::Progress) -> Result<Self, Undecodable> {
        Ok(Self { text: message.text, expected_end: take!(message.expected_end_unix_ms) })
    }
}

impl Stored for (Outcome, Timestamp) {
    type Message = pb::Settled;

    fn store(&self) -> pb::Settled {
        let (outcome, at) = self;
        pb::Settled { outcome: Some(outcome.store()), at_unix_ms: at.store() }
    }

    fn restore(message: pb::Settled) -> Result<Self, Undecodable> {
        Ok((take!(required message.outcome), take!(message.at_unix_ms)))
    }
}

impl Stored for Outcome {
    type Message = pb::Outcome;

    fn store(&self) -> pb::Outcome {
        let variant = match self {
            Self::Done => Variant::Done(pb::Nothing {}),
            Self::NotApplicable => Variant::NotApplicable(pb::Nothing {}),
            Self::NotDone => Variant::NotDone(pb::Nothing {}),
            Self::Failed(reason) => Variant::Failed(reason.clone()),
            Self::Blocked(reason) => Variant::Blocked(reason.clone()),
            Self::TimedOut(reason) => Variant::TimedOut(reason.clone()),
            Self::Cancelled => Variant::Cancelled(pb::Nothing {}),
            Self::Unknown(reason) => Variant::Unknown(reason.clone()),
        };
        pb::Outcome { variant: Some(variant) }
    }

    fn restore(message: pb::Outcome) -> Result<Self, Undecodable> {
        Ok(match message.variant.ok_or(Fault::UnknownVariant)? {
            Variant::Done(pb::Nothing {}) => Self::Done,
            Variant::NotApplicable(pb::Nothing {}) => Self::NotApplicable,
            Variant::NotDone(pb::Nothing {}) => Self::NotDone,
            Variant::Failed(reason) => Self::Failed(reason),
            Variant::Blocked(reason) => Self::Blocked(reason),
            Variant::TimedOut(reason) => Self::TimedOut(reason),
            Variant::Cancelled(pb::Nothing {}) => Self::Cancelled,
            Variant::Unknown(reason) => Self::Unknown(reason),
        })
    }
}

impl Stored for Waiver {
    type Message = pb::Waiver;

    fn store(&self) -> pb::Waiver {
        pb::Waiver {
            member: Some(self.member.store()),
            hook: Some(self.hook.store()),
            why: Some(self.why.store()),
            at_unix_ms: self.at.store(),
        }
    }

    fn restore(message: pb::Waiver) -> Result<Self, Undecodable> {
        Ok(Self {
            member: take!(required message.member),
            hook: take!(required message.hook),
            why: take!(required message.why),
            at: take!(message.at_unix_ms),
        })
    }
}

impl Stored for WaiverReason {
    type Message = pb::WaiverReason;

    fn store(&self) -> pb::WaiverReason {
        let variant = match self {
            Self::Unreachable => pb::waiver_reason::Variant::Unreachable(pb::Nothing {}),
            Self::Skipped { who, reason } => {
                let (who, reason) = (who.clone(), reason.clone());
                pb::waiver_reason::Variant::Skipped(pb::waiver_reason::Skipped { who, reason })
            }
        };
        pb::WaiverReason { variant: Some(variant) }
    }

    fn restore(message: pb::WaiverReason) -> Result<Self, Undecodable> {
        Ok(match message.variant.ok_or(Fault::UnknownVariant)? {
            pb::waiver_reason::Variant::Unreachable(pb::Nothing {}) => Self::Unreachable,
            pb::waiver_reason::Variant::Skipped(pb::waiver_reason::Skipped { who, reason }) => {
                Self::Skipped { who, reason }
            }
        })
    }
}
