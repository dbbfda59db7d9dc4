//! The commands and entries of the log, and the result of applying them.

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
    /// Cluster time; `apply` never lets time go back.
    pub at: Timestamp,
    /// The replica that proposed the entry.
    pub by: VmName,
    pub command: Command,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    RegisterWorkloads(RegisterWorkloads),
    ReportDocument(ReportDocument),
    MarkDocumentStale(MarkDocumentStale),
    ChooseTreatment(ChooseTreatment),
    BeginAttempt(BeginAttempt),
    ReportProgress(ReportProgress),
    FinishAttempt(FinishAttempt),
    ExpireAttempt(ExpireAttempt),
    WaiveHook(WaiveHook),
    ClaimApproval(ClaimApproval),
    RecordPost(RecordPost),
    TakeSlots(TakeSlots),
    GiveBackSlots(GiveBackSlots),
    BeginLastCall(BeginLastCall),
    RecordReachability(RecordReachability),
    AbandonRestores(AbandonRestores),
    ForgetEvent(ForgetEvent),
    BeginLeadership(BeginLeadership),
    SuspectReplica(SuspectReplica),
    ClearSuspect(ClearSuspect),
    ExcludeReplica(ExcludeReplica),
    ReadmitReplica(ReadmitReplica),
    ReconcileJournal(ReconcileJournal),
    DecommissionReplica(DecommissionReplica),
    BeginDrill(BeginDrill),
    EndDrill(EndDrill),
    RequestAction(RequestAction),
    RegisterSession(RegisterSession),
    DeregisterSession(DeregisterSession),
    UpdateConditions(UpdateConditions),
    ExtendAttempt(ExtendAttempt),
    RecordImpact(RecordImpact),
    RecordDeliveries(RecordDeliveries),
    RaiseVersion(RaiseVersion),
}

/// The workloads and groups of the proposing replica's configuration; replaces the earlier registration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RegisterWorkloads {
    pub workloads: Vec<Workload>,
    pub groups: Vec<Group>,
}

/// The current document of the proposing replica's endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReportDocument {
    /// The number of reports of this replica in the log: a repeated or overtaken report does not match.
    pub after: u64,
    pub document: Document,
}

/// The leader has received nothing from this replica, or the replica's channel is stalled, for so long that its
/// document no longer counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MarkDocumentStale {
    pub replica: VmName,
}

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

/// The leader has received nothing from this replica for some time, or receives status reports again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordReachability {
    pub replica: VmName,
    pub reachable: bool,
}

/// This replica is no longer a member: mandatory restores of its workloads are not waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AbandonRestores {
    pub replica: VmName,
}

/// No document has listed the event for `forget_after`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ForgetEvent {
    pub event: EventId,
}

/// The proposing replica leads; only the leader may claim from here on. Starts a new reconciliation number for every
/// voter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeginLeadership {
    pub term: u64,
    /// How often the leader has found a quorum within the term.
    pub turn: u64,
    pub voters: Vec<VmName>,
}

/// The leader has received nothing from this voter for so long that the voter may come to act alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SuspectReplica {
    pub replica: VmName,
    pub number: u64,
}

/// An operator vouches that this replica, which is no longer a member, does not run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClearSuspect {
    pub replica: VmName,
}

/// An operator removes this replica: the replica is not added again automatically.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExcludeReplica {
    pub replica: VmName,
}

/// An operator adds this replica, which may have been excluded before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReadmitReplica {
    pub replica: VmName,
}

/// The isolated approvals of the proposing replica, as in its journal; reconciles the replica under the current number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReconcileJournal {
    pub number: u64,
    pub journal: Vec<JournalEntry>,
}

/// This replica's VM is deleted by an event, and the replica is no longer a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DecommissionReplica {
    pub replica: VmName,
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

/// A workload has connected to the proposing replica; replaces the earlier registration of this name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RegisterSession {
    pub workload: Workload,
}

/// A session workload of the proposing replica deregisters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeregisterSession {
    pub workload: WorkloadName,
    /// Also while an event prepares the workload: by an operator or a user with the right to do so, or
    /// because the configuration no longer permits the workload.
    pub forced: bool,
}

/// The changed conditions of the workloads on the proposing replica's VM.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UpdateConditions {
    pub conditions: Vec<(WorkloadName, Condition)>,
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

/// Notifications were delivered to other systems, and are not sent again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordDeliveries {
    pub deliveries: Vec<Delivery>,
}

/// Every replica knows this cluster version, so entries have the meaning of this version from here on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RaiseVersion {
    pub version: u64,
}

impl Command {
    /// For logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::RegisterWorkloads(_) => "register_workloads",
            Self::ReportDocument(_) => "report_document",
            Self::MarkDocumentStale(_) => "mark_document_stale",
            Self::ChooseTreatment(_) => "choose_treatment",
            Self::BeginAttempt(_) => "begin_attempt",
            Self::ReportProgress(_) => "report_progress",
            Self::FinishAttempt(_) => "finish_attempt",
            Self::ExpireAttempt(_) => "expire_attempt",
            Self::WaiveHook(_) => "waive_hook",
            Self::ClaimApproval(_) => "claim_approval",
            Self::RecordPost(_) => "record_post",
            Self::TakeSlots(_) => "take_slots",
            Self::GiveBackSlots(_) => "give_back_slots",
            Self::BeginLastCall(_) => "begin_last_call",
            Self::RecordReachability(_) => "record_reachability",
            Self::AbandonRestores(_) => "abandon_restores",
            Self::ForgetEvent(_) => "forget_event",
            Self::BeginLeadership(_) => "begin_leadership",
            Self::SuspectReplica(_) => "suspect_replica",
            Self::ReconcileJournal(_) => "reconcile_journal",
            Self::ClearSuspect(_) => "clear_suspect",
            Self::ExcludeReplica(_) => "exclude_replica",
            Self::ReadmitReplica(_) => "readmit_replica",
            Self::DecommissionReplica(_) => "decommission_replica",
            Self::BeginDrill(_) => "begin_drill",
            Self::EndDrill(_) => "end_drill",
            Self::RequestAction(request) => request.what.as_str(),
            Self::RegisterSession(_) => "register_session",
            Self::DeregisterSession(_) => "deregister_session",
            Self::UpdateConditions(_) => "update_conditions",
            Self::ExtendAttempt(_) => "extend_attempt",
            Self::RecordImpact(_) => "record_impact",
            Self::RecordDeliveries(_) => "record_deliveries",
            Self::RaiseVersion(_) => "raise_version",
        }
    }
}

/// The result of applying an entry. An illegal, repeated or late command is ignored, never an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ApplyResult {
    Applied,
    Rejected(Rejection),
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
    /// The event has changed since the operator saw it.
    Changed,
    /// An operator's hold is in force.
    Held,
    /// An operator's pause is in force.
    Paused,
    /// The hold or pause would not end, has ended, or would last too long.
    Unbounded,
    TooManyWorkloads,
}

string_enum!(Rejection {
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

/// Cut at a character boundary.
pub fn bounded(text: &str) -> String {
    let mut end = text.len().min(TEXT_LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}
