//! What stands in the log: entries, and what became of them.

use crate::model::attempt::{Outcome, Progress, WaiverReason};
use crate::model::claim::{PostOutcome, Reason};
use crate::model::document::{Announcement, Document};
use crate::model::drill::Mode;
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, EventId, VmName, WorkloadName};
use crate::model::isolated_approval::JournalEntry;
use crate::model::notification::Delivery;
use crate::model::operator::OperatorRequest;
use crate::model::time::Timestamp;
use crate::model::treatment::Treatment;
use crate::model::workload::{Condition, Group, Intent, Member, Workload};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// One entry of the log, stamped by the leader that appended it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// In the cluster's time; `apply` never lets time go back.
    pub at: Timestamp,
    /// The replica that asked for it.
    pub by: VmName,
    pub command: Command,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// The workloads and groups of the asking replica's configuration; replaces what it registered before.
    Register { workloads: Vec<Workload>, groups: Vec<Group> },
    /// What the asking replica's endpoint says now.
    Report {
        /// How many reports of this replica are in the log already: a repeated or overtaken report does not fit.
        after: u64,
        document: Document,
    },
    /// The leader has not heard from this replica, or its channel is stalled, for so long that its document no longer
    /// counts.
    Discount { replica: VmName },
    /// Policy's choice.
    Treat { event: EventId, treatment: Treatment },
    /// An attempt is assigned to a replica.
    Begin { event: EventId, member: Member, hook: HookId, intent: Intent, on: VmName, deadline: Timestamp },
    /// A running hook said something of itself.
    Advance { event: EventId, attempt: AttemptId, progress: Progress },
    /// An attempt ended.
    Settle { event: EventId, attempt: AttemptId, outcome: Outcome },
    /// The leader no longer waits for an attempt whose deadline has passed.
    Expire { event: EventId, attempt: AttemptId },
    /// A hook is no longer waited for.
    Waive { event: EventId, member: Member, hook: HookId, why: WaiverReason },
    /// What of the event was decided is to be approved by this replica; `until` is when another may be named.
    Claim {
        event: EventId,
        approver: VmName,
        reason: Reason,
        decision: u64,
        stints: Vec<(Member, u64)>,
        until: Timestamp,
    },
    /// What became of a claim.
    Posted { event: EventId, attempt: AttemptId, outcome: PostOutcome },
    /// The event takes every slot that it lacks.
    Take { event: EventId },
    /// The event does not go on, and its members return.
    GiveBack { event: EventId },
    /// The end of the notice is near: the event is prepared over the budget as far as that moves service away.
    LastCall { event: EventId },
    /// The leader has not heard from this replica for some time, or hears it again.
    Contact { replica: VmName, reachable: bool },
    /// This replica is no member any more: what is owed to its workloads is not waited for.
    Removed { replica: VmName },
    /// Nobody has listed the event for `forget_after`.
    Forget { event: EventId },
    /// The asking replica leads; only it may claim from here on. Starts a new number of suspicion for every voter.
    Lead {
        term: u64,
        /// How often it has found a quorum within the term.
        turn: u64,
        voters: Vec<VmName>,
    },
    /// The leader has not heard from this voter for so long that it may come to act alone.
    Suspect { replica: VmName, number: u64 },
    /// Somebody vouches that this replica, which is no member any more, does not run.
    Absolve { replica: VmName },
    /// An operator removes this replica: it is not brought in again by itself.
    Exclude { replica: VmName },
    /// An operator adds this replica, which may have been excluded before.
    Readmit { replica: VmName },
    /// What the asking replica did alone, as it stands in its journal; clears it under the current number.
    Account { number: u64, journal: Vec<JournalEntry> },
    /// This replica's VM is deleted by an event, and it is no member any more.
    Dismiss { replica: VmName },
    /// A made-up event is to go through the hooks.
    Drill { announcement: Announcement, mode: Mode, who: String },
    /// A drill is over, and what it took away is put back.
    EndDrill { event: EventId },
    /// Of an operator.
    Ask { what: OperatorRequest, who: String, reason: String },
    /// A workload has dialled in at the asking replica; replaces what the one of its name said before.
    Enlist { workload: Workload },
    /// A workload that dialled in at the asking replica takes its leave.
    Delist { workload: WorkloadName },
    /// What changed about the workloads on the asking replica's VM.
    Note { conditions: Vec<(WorkloadName, Condition)> },
    /// A running hook asks for more time.
    Extend { event: EventId, attempt: AttemptId, deadline: Timestamp },
    /// For how long the event, which is over, kept the asking replica from running.
    Observed { event: EventId, lasted: Duration },
    /// Other systems were told something, and are not told again.
    Notified { told: Vec<Delivery> },
    /// Everybody knows this cluster version, so entries mean from here on what it says.
    Raise { version: u64 },
}

impl Command {
    /// For logs and metrics.
    pub const fn as_word(&self) -> &'static str {
        match self {
            Self::Register { .. } => "register",
            Self::Report { .. } => "report",
            Self::Discount { .. } => "discount",
            Self::Treat { .. } => "treat",
            Self::Begin { .. } => "begin",
            Self::Advance { .. } => "advance",
            Self::Settle { .. } => "settle",
            Self::Expire { .. } => "expire",
            Self::Waive { .. } => "waive",
            Self::Claim { .. } => "claim",
            Self::Posted { .. } => "posted",
            Self::Take { .. } => "take",
            Self::GiveBack { .. } => "give_back",
            Self::LastCall { .. } => "last_call",
            Self::Contact { .. } => "contact",
            Self::Removed { .. } => "removed",
            Self::Forget { .. } => "forget",
            Self::Lead { .. } => "lead",
            Self::Suspect { .. } => "suspect",
            Self::Account { .. } => "account",
            Self::Absolve { .. } => "absolve",
            Self::Exclude { .. } => "exclude",
            Self::Readmit { .. } => "readmit",
            Self::Dismiss { .. } => "dismiss",
            Self::Drill { .. } => "drill",
            Self::EndDrill { .. } => "end_drill",
            Self::Ask { what, .. } => what.as_word(),
            Self::Enlist { .. } => "enlist",
            Self::Delist { .. } => "delist",
            Self::Note { .. } => "note",
            Self::Extend { .. } => "extend",
            Self::Observed { .. } => "observed",
            Self::Notified { .. } => "notified",
            Self::Raise { .. } => "raise",
        }
    }
}

/// What became of an entry. An illegal, repeated or late command is ignored, never an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ApplyResult {
    Applied,
    Ignored(Rejection),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejection {
    UnknownReplica,
    UnknownEvent,
    UnknownAttempt,
    TooManyEvents,
    OutOfOrder,
    Repeated,
    Late,
    NotDue,
    NotNow,
    NotYours,
    /// The event is not what the operator has seen any more.
    Changed,
    /// An operator's hold is in force.
    Held,
    /// An operator's pause is in force.
    Paused,
    /// It would not end, has ended, or would last too long.
    Unbounded,
    TooManyWorkloads,
}

words!(Rejection {
    UnknownReplica => "unknown_replica",
    UnknownEvent => "unknown_event",
    UnknownAttempt => "unknown_attempt",
    TooManyEvents => "too_many_events",
    OutOfOrder => "out_of_order",
    Repeated => "repeated",
    Late => "late",
    NotDue => "not_due",
    NotNow => "not_now",
    NotYours => "not_yours",
    Changed => "changed",
    Held => "held",
    Paused => "paused",
    Unbounded => "unbounded",
    TooManyWorkloads => "too_many_workloads",
});

/// Text from outside that goes into the log is cut to this many bytes.
pub const TEXT_LIMIT: usize = 1024;

/// Cut at a character's boundary.
pub fn bounded(text: &str) -> String {
    let mut end = text.len().min(TEXT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}
