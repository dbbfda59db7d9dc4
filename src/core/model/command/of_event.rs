//! Commands about events, their hooks and their approvals.

use crate::model::attempt::{Outcome, Progress, WaiverReason};
use crate::model::claim::{PostOutcome, Reason};
use crate::model::document::Announcement;
use crate::model::drill::Mode;
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, EventId, VmName};
use crate::model::operator::OperatorRequest;
use crate::model::time::Timestamp;
use crate::model::treatment::Treatment;
use crate::model::workload::{Intent, Member};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The treatment chosen by policy.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChooseTreatment {
    pub event: EventId,
    pub treatment: Treatment,
}

/// An attempt is assigned to a replica.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeginAttempt {
    pub event: EventId,
    pub member: Member,
    pub hook: HookId,
    pub intent: Intent,
    pub on: VmName,
    pub deadline: Timestamp,
}

/// A running hook reported progress.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReportProgress {
    pub event: EventId,
    pub attempt: AttemptId,
    pub progress: Progress,
}

/// An attempt ended.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FinishAttempt {
    pub event: EventId,
    pub attempt: AttemptId,
    pub outcome: Outcome,
}

/// The leader no longer waits for an attempt whose deadline has passed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExpireAttempt {
    pub event: EventId,
    pub attempt: AttemptId,
}

/// A hook is no longer waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WaiveHook {
    pub event: EventId,
    pub member: Member,
    pub hook: HookId,
    pub why: WaiverReason,
}

/// The decided revision of the event is to be approved by this replica; from `until` on another approver may be named.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClaimApproval {
    pub event: EventId,
    pub approver: VmName,
    pub reason: Reason,
    pub decided_at_revision: u64,
    pub stints: Vec<(Member, u64)>,
    pub until: Timestamp,
    /// Through the control plane, if the approver's metadata endpoint gives no fresh document.
    pub is_last_resort: bool,
}

/// The outcome of a claim.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordPost {
    pub event: EventId,
    pub attempt: AttemptId,
    pub outcome: PostOutcome,
}

/// The event takes every missing slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TakeSlots {
    pub event: EventId,
}

/// The event makes no progress, and the members return.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GiveBackSlots {
    pub event: EventId,
}

/// The end of the notice is near: the event is prepared over the budget as far as that moves service away.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeginLastCall {
    pub event: EventId,
}

/// No document has listed the event for `forget_after`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ForgetEvent {
    pub event: EventId,
}

/// A made-up event is to run through the hooks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeginDrill {
    pub announcement: Announcement,
    pub mode: Mode,
    pub who: String,
}

/// A drill is over, and the prepared workloads are restored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EndDrill {
    pub event: EventId,
}

/// A request of an operator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RequestAction {
    pub what: OperatorRequest,
    pub who: String,
    pub reason: String,
}

/// A running hook asks for more time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExtendAttempt {
    pub event: EventId,
    pub attempt: AttemptId,
    pub deadline: Timestamp,
}

/// For how long the event, which is over, kept the proposing replica from running.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordImpact {
    pub event: EventId,
    pub lasted: Duration,
}
