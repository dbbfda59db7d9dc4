//! Entries and the commands in them.

use std::time::Duration;

use super::pb;
use super::pb::command::{self, Variant};
use super::stored::{Stored, named, required, take};
use super::undecodable::{Fault, Undecodable};
use super::wish;
use crate::machine::command::{Command, Entry};
use crate::machine::document::Announcement;
use crate::machine::drill::Mode;
use crate::machine::id::{AttemptId, EventId, VmName};
use crate::machine::time::Timestamp;
use crate::machine::workload::{HookId, Intent, Member};

impl Stored for Entry {
    type Message = pb::Entry;

    fn store(&self) -> pb::Entry {
        pb::Entry { at_unix_ms: self.at.store(), by: self.by.store(), command: Some(self.command.store()) }
    }

    fn restore(message: pb::Entry) -> Result<Self, Undecodable> {
        Ok(Self { at: take!(message.at_unix_ms), by: take!(message.by), command: take!(required message.command) })
    }
}

impl Stored for Command {
    type Message = pb::Command;

    fn store(&self) -> pb::Command {
        pb::Command { variant: Some(variant(self)) }
    }

    fn restore(message: pb::Command) -> Result<Self, Undecodable> {
        Ok(match message.variant.ok_or(Fault::UnknownVariant)? {
            Variant::Register(register) => {
                Self::Register { workloads: take!(variant register.workloads), groups: take!(variant register.groups) }
            }
            Variant::Report(report) => {
                Self::Report { after: report.after, document: take!(required variant report.document) }
            }
            Variant::Discount(discount) => Self::Discount { replica: take!(variant discount.replica) },
            Variant::Treat(treat) => {
                Self::Treat { event: take!(variant treat.event_id), treatment: take!(required variant treat.treatment) }
            }
            Variant::Begin(begin) => restore_begin(begin)?,
            Variant::Advance(advance) => Self::Advance {
                event: take!(variant advance.event_id),
                attempt: take!(variant advance.attempt),
                progress: take!(required variant advance.progress),
            },
            Variant::Settle(settle) => Self::Settle {
                event: take!(variant settle.event_id),
                attempt: take!(variant settle.attempt),
                outcome: take!(required variant settle.outcome),
            },
            Variant::Expire(expire) => {
                Self::Expire { event: take!(variant expire.event_id), attempt: take!(variant expire.attempt) }
            }
            Variant::Waive(waive) => Self::Waive {
                event: take!(variant waive.event_id),
                member: take!(required variant waive.member),
                hook: take!(required variant waive.hook),
                why: take!(required variant waive.why),
            },
            Variant::Claim(claim) => restore_claim(claim)?,
            Variant::Posted(posted) => Self::Posted {
                event: take!(variant posted.event_id),
                attempt: take!(variant posted.attempt),
                outcome: take!(required variant posted.outcome),
            },
            Variant::GiveUp(give_up) => Self::GiveUp { event: take!(variant give_up.event_id) },
            Variant::Forget(forget) => Self::Forget { event: take!(variant forget.event_id) },
            Variant::Lead(lead) => Self::Lead { term: lead.term, turn: lead.turn, voters: take!(variant lead.voters) },
            Variant::Suspect(suspect) => {
                Self::Suspect { replica: take!(variant suspect.replica), number: suspect.number }
            }
            Variant::Absolve(absolve) => Self::Absolve { replica: take!(variant absolve.replica) },
            Variant::Account(account) => {
                Self::Account { number: account.number, journal: take!(variant account.journal) }
            }
            Variant::Dismiss(dismiss) => Self::Dismiss { replica: take!(variant dismiss.replica) },
            Variant::Drill(drill) => Self::Drill {
                announcement: take!(required variant drill.announcement),
                mode: take!(variant drill.mode),
                who: drill.who,
            },
            Variant::EndDrill(end) => Self::EndDrill { event: take!(variant end.event_id) },
            Variant::Hold(hold) => wish::hold(hold)?,
            Variant::Release(release) => wish::release(release)?,
            Variant::Pause(pause) => wish::pause(pause)?,
            Variant::Resume(resume) => wish::resume(resume),
            Variant::Approve(approve) => wish::approve(approve)?,
            Variant::Skip(skip) => wish::skip(skip)?,
            Variant::Wish(wished) => wish::wish(wished),
            Variant::Enlist(enlist) => Self::Enlist { workload: take!(required variant enlist.workload) },
            Variant::Delist(delist) => Self::Delist { workload: take!(variant delist.workload) },
            Variant::Note(note) => Self::Note { conditions: take!(variant note.conditions) },
            Variant::Extend(extend) => restore_extend(extend)?,
            Variant::Observed(observed) => restore_observed(observed)?,
            Variant::Notified(notified) => Self::Notified { told: take!(variant notified.told) },
        })
    }
}

fn restore_begin(begin: command::Begin) -> Result<Command, Undecodable> {
    Ok(Command::Begin {
        event: take!(variant begin.event_id),
        member: take!(required variant begin.member),
        hook: take!(required variant begin.hook),
        intent: take!(variant begin.intent),
        on: take!(variant begin.on),
        deadline: take!(variant begin.deadline_unix_ms),
    })
}

fn restore_claim(claim: command::Claim) -> Result<Command, Undecodable> {
    Ok(Command::Claim {
        event: take!(variant claim.event_id),
        approver: take!(variant claim.approver),
        reason: take!(variant claim.reason),
        until: take!(variant claim.until_unix_ms),
    })
}

fn variant(command: &Command) -> Variant {
    match command {
        Command::Register { workloads, groups } => {
            Variant::Register(command::Register { workloads: workloads.store(), groups: groups.store() })
        }
        Command::Report { after, document } => {
            Variant::Report(command::Report { after: *after, document: Some(document.store()) })
        }
        Command::Discount { replica } => Variant::Discount(command::Discount { replica: replica.store() }),
        Command::Treat { event, treatment } => {
            Variant::Treat(command::Treat { event_id: event.store(), treatment: Some(treatment.store()) })
        }
        Command::Begin { event, member, hook, intent, on, deadline } => {
            begin(event, member, *hook, *intent, on, *deadline)
        }
        Command::Advance { event, attempt, progress } => Variant::Advance(command::Advance {
            event_id: event.store(),
            attempt: attempt.store(),
            progress: Some(progress.store()),
        }),
        Command::Settle { event, attempt, outcome } => Variant::Settle(command::Settle {
            event_id: event.store(),
            attempt: attempt.store(),
            outcome: Some(outcome.store()),
        }),
        Command::Expire { event, attempt } => {
            Variant::Expire(command::Expire { event_id: event.store(), attempt: attempt.store() })
        }
        Command::Waive { event, member, hook, why } => Variant::Waive(command::Waive {
            event_id: event.store(),
            member: Some(member.store()),
            hook: Some(hook.store()),
            why: Some(why.store()),
        }),
        Command::Claim { event, approver, reason, until } => Variant::Claim(command::Claim {
            event_id: event.store(),
            approver: approver.store(),
            reason: reason.store(),
            until_unix_ms: until.store(),
        }),
        Command::Posted { event, attempt, outcome } => Variant::Posted(command::Posted {
            event_id: event.store(),
            attempt: attempt.store(),
            outcome: Some(outcome.store()),
        }),
        Command::GiveUp { event } => Variant::GiveUp(command::GiveUp { event_id: event.store() }),
        Command::Forget { event } => Variant::Forget(command::Forget { event_id: event.store() }),
        Command::Lead { term, turn, voters } => {
            Variant::Lead(command::Lead { term: *term, turn: *turn, voters: voters.store() })
        }
        Command::Suspect { replica, number } => {
            Variant::Suspect(command::Suspect { replica: replica.store(), number: *number })
        }
        Command::Absolve { replica } => Variant::Absolve(command::Absolve { replica: replica.store() }),
        Command::Account { number, journal } => {
            Variant::Account(command::Account { number: *number, journal: journal.store() })
        }
        Command::Dismiss { replica } => Variant::Dismiss(command::Dismiss { replica: replica.store() }),
        Command::Drill { announcement, mode, who } => drill(announcement, *mode, who),
        Command::EndDrill { event } => Variant::EndDrill(command::EndDrill { event_id: event.store() }),
        Command::Ask { what, who, reason } => wish::variant(what, who, reason),
        Command::Enlist { workload } => Variant::Enlist(command::Enlist { workload: Some(workload.store()) }),
        Command::Delist { workload } => Variant::Delist(command::Delist { workload: workload.store() }),
        Command::Note { conditions } => Variant::Note(command::Note { conditions: conditions.store() }),
        Command::Extend { event, attempt, deadline } => extend(event, *attempt, *deadline),
        Command::Observed { event, lasted } => observed(event, *lasted),
        Command::Notified { told } => Variant::Notified(command::Notified { told: told.store() }),
    }
}

fn drill(announcement: &Announcement, mode: Mode, who: &str) -> Variant {
    let (announcement, mode) = (Some(announcement.store()), mode.store());
    Variant::Drill(command::Drill { announcement, mode, who: who.into() })
}

fn restore_observed(observed: command::Observed) -> Result<Command, Undecodable> {
    Ok(Command::Observed { event: take!(variant observed.event_id), lasted: take!(variant observed.lasted_ms) })
}

fn observed(event: &EventId, lasted: Duration) -> Variant {
    Variant::Observed(command::Observed { event_id: event.store(), lasted_ms: lasted.store() })
}

fn restore_extend(extend: command::Extend) -> Result<Command, Undecodable> {
    Ok(Command::Extend {
        event: take!(variant extend.event_id),
        attempt: take!(variant extend.attempt),
        deadline: take!(variant extend.deadline_unix_ms),
    })
}

fn extend(event: &EventId, attempt: AttemptId, deadline: Timestamp) -> Variant {
    Variant::Extend(command::Extend {
        event_id: event.store(),
        attempt: attempt.store(),
        deadline_unix_ms: deadline.store(),
    })
}

fn begin(event: &EventId, member: &Member, hook: HookId, intent: Intent, on: &VmName, deadline: Timestamp) -> Variant {
    Variant::Begin(command::Begin {
        event_id: event.store(),
        member: Some(member.store()),
        hook: Some(hook.store()),
        intent: intent.store(),
        on: on.store(),
        deadline_unix_ms: deadline.store(),
    })
}
