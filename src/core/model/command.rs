//! The commands and entries of the log, and the result of applying them.

mod of_event;
mod of_replica;
mod rejection;

pub use self::of_event::*;
pub use self::of_replica::*;
pub use self::rejection::{ApplyResult, Rejection};
use crate::model::id::VmName;
use crate::model::time::Timestamp;
use alloc::string::String;

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
