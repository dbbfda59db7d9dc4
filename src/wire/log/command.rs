//! Entries and the commands in them.

use super::pb;
use super::pb::command::{self, Variant};
use super::stored::Stored;
use super::tables::{message, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::command::{Command, Entry};
use allclear_core::model::operator::OperatorRequest;

message!(Entry as Entry { at: at_unix_ms, by: by, command: command required });

/// Each is stored as the variant of its name; what operators ask for is told apart by what that is.
macro_rules! commands {
    (
        $($variant:ident($message:ident) { $($field:ident: $stored:ident $($must:ident)?),+ })+;
        $($asked:ident($wish:ident) { $($of:ident: $kept:ident $($needed:ident)?),* })+
    ) => {
        impl Stored for Command {
            type Message = pb::Command;

            fn store(&self) -> pb::Command {
                let variant = match self {
                    $(Self::$variant { $($field),+ } => {
                        Variant::$variant(command::$variant { $($stored: store!($field $($must)?)),+ })
                    })+
                    $(Self::Ask { what: OperatorRequest::$asked { $($of),* }, who, reason } => Variant::$asked(command::$asked {
                        $($kept: store!($of $($needed)?),)*
                        who: who.clone(),
                        reason: reason.clone(),
                    }),)+
                };
                pb::Command { variant: Some(variant) }
            }

            fn restore(message: pb::Command) -> Result<Self, Undecodable> {
                Ok(match message.variant.ok_or(DecodeFault::UnknownVariant)? {
                    $(Variant::$variant($message) => Self::$variant {
                        $($field: take!($message.$stored $($must)? at concat!(stringify!($message), ".", stringify!($stored)))),+
                    },)+
                    $(Variant::$asked($wish) => Self::Ask {
                        what: OperatorRequest::$asked {
                            $($of: take!($wish.$kept $($needed)? at concat!(stringify!($wish), ".", stringify!($kept)))),*
                        },
                        who: $wish.who,
                        reason: $wish.reason,
                    },)+
                })
            }
        }
    };
}

commands! {
    Register(register) { workloads: workloads, groups: groups }
    Report(report) { after: after, document: document required }
    Discount(discount) { replica: replica }
    Treat(treat) { event: event_id, treatment: treatment required }
    Begin(begin) {
        event: event_id,
        member: member required,
        hook: hook required,
        intent: intent,
        on: on,
        deadline: deadline_unix_ms
    }
    Advance(advance) { event: event_id, attempt: attempt, progress: progress required }
    Settle(settle) { event: event_id, attempt: attempt, outcome: outcome required }
    Expire(expire) { event: event_id, attempt: attempt }
    Waive(waive) { event: event_id, member: member required, hook: hook required, why: why required }
    Claim(claim) { event: event_id, approver: approver, reason: reason, decision: decision, stints: stints, until: until_unix_ms }
    Posted(posted) { event: event_id, attempt: attempt, outcome: outcome required }
    Take(take) { event: event_id }
    GiveBack(give_back) { event: event_id }
    LastCall(last_call) { event: event_id }
    Removed(removed) { replica: replica }
    Contact(contact) { replica: replica, reachable: reachable }
    Forget(forget) { event: event_id }
    Lead(lead) { term: term, turn: turn, voters: voters }
    Suspect(suspect) { replica: replica, number: number }
    Absolve(absolve) { replica: replica }
    Exclude(exclude) { replica: replica }
    Readmit(readmit) { replica: replica }
    Account(account) { number: number, journal: journal }
    Dismiss(dismiss) { replica: replica }
    Drill(drill) { announcement: announcement required, mode: mode, who: who }
    EndDrill(end) { event: event_id }
    Enlist(enlist) { workload: workload required }
    Delist(delist) { workload: workload }
    Note(note) { conditions: conditions }
    Extend(extend) { event: event_id, attempt: attempt, deadline: deadline_unix_ms }
    Observed(observed) { event: event_id, lasted: lasted_ms }
    Notified(notified) { told: told }
    Raise(raise) { version: version };

    Hold(hold) { event: event_id, until: until_unix_ms, no_hooks: no_hooks }
    Release(release) { event: event_id }
    Pause(pause) { until: until_unix_ms }
    Resume(resume) {}
    Approve(approve) { event: event_id, revision: revision, over_budget: over_budget }
    Restored(restored) { member: member required }
    Skip(skip) { event: event_id, member: member required, hook: hook required }
    Wish(wished) { what: what }
}
