//! Attempts, their progress and outcomes, and waivers.

use super::pb;
use super::pb::waiver_reason::{Skipped, Variant};
use super::stored::{Paired, Stored};
use super::tables::{message, one_of, pair, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::attempt::{Attempt, BlockedCount, Outcome, Progress, Waiver, WaiverReason};
use allclear_core::model::time::Timestamp;

message!(Attempt as Attempt {
    id: id,
    member: member required,
    hook: hook required,
    intent: intent,
    on: on,
    begun_at: begun_at_unix_ms,
    deadline: deadline_unix_ms,
    progress: progress,
    outcome: settled,
    late: late,
    stint: stint,
    blocked: blocked,
});

message!(BlockedCount as Blocked { times: times, since: since_unix_ms });

message!(Progress as Progress { text: text, expected_end: expected_end_unix_ms });

pair!(Outcome, Timestamp as AttemptEnd { outcome: outcome required, at: at_unix_ms });

one_of!(Outcome as outcome {
    Done,
    NotApplicable,
    NotDone,
    Failed(failed),
    Blocked(blocked),
    TimedOut(timed_out),
    Cancelled,
    Unknown(unknown),
});

message!(Waiver as Waiver { member: member required, hook: hook required, why: why required, at: at_unix_ms });

impl Stored for WaiverReason {
    type Message = pb::WaiverReason;

    fn store(&self) -> pb::WaiverReason {
        let variant = match self {
            Self::Unreachable => Variant::Unreachable(pb::Nothing {}),
            Self::Skipped { who, reason } => Variant::Skipped(Skipped { who: who.clone(), reason: reason.clone() }),
        };
        pb::WaiverReason { variant: Some(variant) }
    }

    fn restore(message: pb::WaiverReason) -> Result<Self, Undecodable> {
        Ok(match message.variant.ok_or(DecodeFault::UnknownVariant)? {
            Variant::Unreachable(pb::Nothing {}) => Self::Unreachable,
            Variant::Skipped(Skipped { who, reason }) => Self::Skipped { who, reason },
        })
    }
}
