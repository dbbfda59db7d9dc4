//! Entries and the commands in them.

use super::pb;
use super::pb::command::{self, Variant};
use super::stored::Stored;
use super::tables::{message, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::command::{
    BeginAttempt, BeginDrill, BeginLastCall, BeginLeadership, ChooseTreatment, ClaimApproval, ClearSuspect, Command,
    DeregisterSession, EndDrill, Entry, ExcludeReplica, ExpireAttempt, ExtendAttempt, FinishAttempt, ForgetEvent,
    MarkDocumentStale, RaiseVersion, ReadmitReplica, ReconcileJournal, RecordDeliveries, RecordImpact, RecordPost,
    RecordReachability, RecordRemoval, RegisterSession, RegisterWorkloads, ReleaseSlots, RemoveReplica, ReportDocument,
    ReportProgress, RequestAction, SuspectReplica, TakeSlots, UpdateConditions, WaiveHook,
};
use allclear_core::model::operator::OperatorRequest;

message!(Entry as Entry { at: at_unix_ms, by: by, command: command required });

/// Each is stored as the variant of its name; what operators ask for is told apart by what that is.
macro_rules! commands {
    (
        $($variant:ident from $stored_as:ident($message:ident) { $($field:ident: $stored:ident $($must:ident)?),+ })+;
        $($asked:ident($wish:ident) { $($of:ident: $kept:ident $($needed:ident)?),* })+
    ) => {
        impl Stored for Command {
            type Message = pb::Command;

            fn store(&self) -> pb::Command {
                let variant = match self {
                    $(Self::$variant($variant { $($field),+ }) => {
                        Variant::$stored_as(command::$stored_as { $($stored: store!($field $($must)?)),+ })
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
                    $(Variant::$stored_as($message) => Self::$variant($variant {
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
    RegisterWorkloads from Register(register) { workloads: workloads, groups: groups }
    ReportDocument from Report(report) { after: after, document: document required }
    MarkDocumentStale from Discount(discount) { replica: replica }
    ChooseTreatment from Treat(treat) { event: event_id, treatment: treatment required }
    BeginAttempt from Begin(begin) {
        event: event_id,
        member: member required,
        hook: hook required,
        intent: intent,
        on: on,
        deadline: deadline_unix_ms
    }
    ReportProgress from Advance(advance) { event: event_id, attempt: attempt, progress: progress required }
    FinishAttempt from Settle(settle) { event: event_id, attempt: attempt, outcome: outcome required }
    ExpireAttempt from Expire(expire) { event: event_id, attempt: attempt }
    WaiveHook from Waive(waive) { event: event_id, member: member required, hook: hook required, why: why required }
    ClaimApproval from Claim(claim) { event: event_id, approver: approver, reason: reason, decision: decision, stints: stints, until: until_unix_ms }
    RecordPost from Posted(posted) { event: event_id, attempt: attempt, outcome: outcome required }
    TakeSlots from Take(take) { event: event_id }
    ReleaseSlots from GiveBack(give_back) { event: event_id }
    BeginLastCall from LastCall(last_call) { event: event_id }
    RecordRemoval from Removed(removed) { replica: replica }
    RecordReachability from Contact(contact) { replica: replica, reachable: reachable }
    ForgetEvent from Forget(forget) { event: event_id }
    BeginLeadership from Lead(lead) { term: term, turn: turn, voters: voters }
    SuspectReplica from Suspect(suspect) { replica: replica, number: number }
    ClearSuspect from Absolve(absolve) { replica: replica }
    ExcludeReplica from Exclude(exclude) { replica: replica }
    ReadmitReplica from Readmit(readmit) { replica: replica }
    ReconcileJournal from Account(account) { number: number, journal: journal }
    RemoveReplica from Dismiss(dismiss) { replica: replica }
    BeginDrill from Drill(drill) { announcement: announcement required, mode: mode, who: who }
    EndDrill from EndDrill(end) { event: event_id }
    RegisterSession from Enlist(enlist) { workload: workload required }
    DeregisterSession from Delist(delist) { workload: workload }
    UpdateConditions from Note(note) { conditions: conditions }
    ExtendAttempt from Extend(extend) { event: event_id, attempt: attempt, deadline: deadline_unix_ms }
    RecordImpact from Observed(observed) { event: event_id, lasted: lasted_ms }
    RecordDeliveries from Notified(notified) { told: told }
    RaiseVersion from Raise(raise) { version: version };

    Hold(hold) { event: event_id, until: until_unix_ms, no_hooks: no_hooks }
    Release(release) { event: event_id }
    Pause(pause) { until: until_unix_ms }
    Resume(resume) {}
    Approve(approve) { event: event_id, revision: revision, over_budget: over_budget }
    Restored(restored) { member: member required }
    Skip(skip) { event: event_id, member: member required, hook: hook required }
    Wish(wished) { what: what }
}
