//! Entries of the log as a line for people.

use crate::machine::command::Command;
use crate::machine::operator::Asked;

pub(super) fn shown(command: &Command) -> String {
    let word = command.as_word();
    match command {
        Command::Report { document, .. } => {
            let listed = document.events.iter().map(|event| format!(" {} {}", short(event.id.as_str()), event.status));
            format!("{word}{}", listed.collect::<String>())
        }
        Command::Discount { replica } | Command::Absolve { replica } | Command::Dismiss { replica } => {
            format!("{word} {replica}")
        }
        Command::Suspect { replica, number } => format!("{word} {replica}, number {number}"),
        Command::Treat { event, treatment } => format!("{word} {}: {}", short(event.as_str()), treatment.rule),
        Command::Begin { event, member, hook, intent, on, .. } => {
            format!("{word} {}: {member} {} {intent}, on {on}", short(event.as_str()), hook.phase)
        }
        Command::Settle { event, attempt, outcome } => {
            format!("{word} {} [{attempt}]: {}", short(event.as_str()), outcome.as_word())
        }
        Command::Claim { event, approver, reason, .. } => {
            format!("{word} {} for {approver}: {}", short(event.as_str()), reason.as_word())
        }
        Command::Posted { event, attempt, outcome } => {
            format!("{word} {} [{attempt}]: {}", short(event.as_str()), outcome.as_word())
        }
        Command::Expire { event, attempt }
        | Command::Advance { event, attempt, .. }
        | Command::Extend { event, attempt, .. } => format!("{word} {} [{attempt}]", short(event.as_str())),
        Command::Waive { event, member, hook, .. } => {
            format!("{word} {}: {member} {}", short(event.as_str()), hook.phase)
        }
        Command::GiveUp { event }
        | Command::Forget { event }
        | Command::EndDrill { event }
        | Command::Observed { event, .. } => {
            format!("{word} {}", short(event.as_str()))
        }
        Command::Lead { term, turn, .. } => format!("{word} in term {term}, turn {turn}"),
        Command::Account { number, journal } => format!("{word} under number {number}, {} entries", journal.len()),
        Command::Ask { what, .. } => match what {
            Asked::Hold { event, .. }
            | Asked::Release { event }
            | Asked::Approve { event, .. }
            | Asked::Skip { event, .. } => format!("{word} {}", short(event.as_str())),
            Asked::Pause { .. } | Asked::Resume | Asked::Wish { .. } => word.into(),
        },
        Command::Register { .. }
        | Command::Drill { .. }
        | Command::Enlist { .. }
        | Command::Delist { .. }
        | Command::Note { .. }
        | Command::Notified { .. } => word.into(),
    }
}

/// The first part of a GUID.
fn short(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}
