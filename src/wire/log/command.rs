//! Entries and the commands in them.

use super::pb;
use super::pb::command::{self, Variant};
use super::stored::Stored;
use super::tables::{message, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::command::{
    AbandonRestores, BeginAttempt, BeginDrill, BeginLastCall, BeginLeadership, ChooseTreatment, ClaimApproval,
    ClearSuspect, Command, DecommissionReplica, DeregisterSession, EndDrill, Entry, ExcludeReplica, ExpireAttempt,
    ExtendAttempt, FinishAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, RaiseVersion, ReadmitReplica,
    ReconcileJournal, RecordDeliveries, RecordImpact, RecordPost, RecordReachability, RegisterSession,
    RegisterWorkloads, ReportDocument, ReportProgress, RequestAction, SuspectReplica, TakeSlots, UpdateConditions,
    WaiveHook,
};
use allclear_core::model::operator::OperatorRequest;

message!(Entry as Entry { at: at_unix_ms, by: by, command: command required });

/// Each `Command` is stored as the protobuf variant with its name. Operator requests are stored as one variant for
/// each `OperatorRequest`.
macro_rules! commands {
    (
        $($variant:ident($message:ident) { $($field:ident: $stored:ident $($must:ident)?),+ })+;
        $($asked:ident($wish:ident) { $($of:ident: $kept:ident $($needed:ident)?),* })+
    ) => {
        impl Stored for Command {
            type Message = pb::Command;

            fn store(&self) -> pb::Command {
                let variant = match self {
                    $(Self::$variant($variant { $($field),+ }) => {
                        Variant::$variant(command::$variant { $($stored: store!($field $($must)?)),+ })
                    })+
                    $(Self::RequestAction(RequestAction { what: OperatorRequest::$asked { $($of),* }, who, reason }) => Variant::$asked(command::$asked {
                        $($kept: store!($of $($needed)?),)*
                        who: who.clone(),
                        reason: reason.clone(),
                    }),)+
                };
                pb::Command { variant: Some(variant) }
            }

            fn restore(message: pb::Command) -> Result<Self, Undecodable> {
                Ok(match message.variant.ok_or(DecodeFault::UnknownVariant)? {
                    $(Variant::$variant($message) => Self::$variant($variant {
                        $($field: take!($message.$stored $($must)? at concat!(stringify!($message), ".", stringify!($stored)))),+
                    }),)+
                    $(Variant::$asked($wish) => Self::RequestAction(RequestAction {
                        what: OperatorRequest::$asked {
                            $($of: take!($wish.$kept $($needed)? at concat!(stringify!($wish), ".", stringify!($kept)))),*
                        },
                        who: $wish.who,
                        reason: $wish.reason,
                    }),)+
                })
            }
        }
    };
}

commands! {
    RegisterWorkloads(register_workloads) { workloads: workloads, groups: groups }
    ReportDocument(report_document) { after: after, document: document required }
    MarkDocumentStale(mark_document_stale) { replica: replica }
    ChooseTreatment(choose_treatment) { event: event_id, treatment: treatment required }
    BeginAttempt(begin_attempt) {
        event: event_id,
        member: member required,
        hook: hook required,
        intent: intent,
        on: on,
        deadline: deadline_unix_ms
    }
    ReportProgress(report_progress) { event: event_id, attempt: attempt, progress: progress required }
    FinishAttempt(finish_attempt) { event: event_id, attempt: attempt, outcome: outcome required }
    ExpireAttempt(expire_attempt) { event: event_id, attempt: attempt }
    WaiveHook(waive_hook) { event: event_id, member: member required, hook: hook required, why: why required }
    ClaimApproval(claim_approval) { event: event_id, approver: approver, reason: reason, decided_at_revision: decided_at_revision, stints: stints, until: until_unix_ms, is_last_resort: is_last_resort }
    RecordPost(record_post) { event: event_id, attempt: attempt, outcome: outcome required }
    TakeSlots(take_slots) { event: event_id }
    GiveBackSlots(give_back_slots) { event: event_id }
    BeginLastCall(begin_last_call) { event: event_id }
    AbandonRestores(abandon_restores) { replica: replica }
    RecordReachability(record_reachability) { replica: replica, reachable: reachable }
    ForgetEvent(forget_event) { event: event_id }
    BeginLeadership(begin_leadership) { term: term, turn: turn, voters: voters }
    SuspectReplica(suspect_replica) { replica: replica, number: number }
    ClearSuspect(clear_suspect) { replica: replica }
    ExcludeReplica(exclude_replica) { replica: replica }
    ReadmitReplica(readmit_replica) { replica: replica }
    ReconcileJournal(reconcile_journal) { number: number, journal: journal }
    DecommissionReplica(decommission_replica) { replica: replica }
    BeginDrill(begin_drill) { announcement: announcement required, mode: mode, who: who }
    EndDrill(end_drill) { event: event_id }
    RegisterSession(register_session) { workload: workload required }
    DeregisterSession(deregister_session) { workload: workload, forced: forced }
    UpdateConditions(update_conditions) { conditions: conditions }
    ExtendAttempt(extend_attempt) { event: event_id, attempt: attempt, deadline: deadline_unix_ms }
    RecordImpact(record_impact) { event: event_id, lasted: lasted_ms }
    RecordDeliveries(record_deliveries) { deliveries: deliveries }
    RaiseVersion(raise_version) { version: version };

    Hold(hold) { event: event_id, until: until_unix_ms, no_hooks: no_hooks }
    Release(release) { event: event_id }
    Pause(pause) { until: until_unix_ms }
    Resume(resume) {}
    Approve(approve) { event: event_id, revision: revision, over_budget: over_budget }
    Restored(restored) { member: member required }
    Skip(skip) { event: event_id, member: member required, hook: hook required }
    Prepare(prepare) { event: event_id, from: from_unix_ms }
    Retry(retry) { event: event_id, member: member required, hook: hook required }
    ClusterChange(cluster_change) { what: what }
}
