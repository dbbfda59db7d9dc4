//! What the leader will decide once what it has appended is committed. It is appended at once, behind what makes it due:
//! a quorum writes both together, so nothing waits for two writes in a row. No act is early by it, for an act follows
//! the entry that assigns it; and what was foreseen wrongly is ignored by `apply`, as any proposal.

use alloc::vec::Vec;

use super::apply::apply;
use super::command::{Command, Entry, Verdict};
use super::plan::plan;
use super::situation::Situation;
use super::state::State;
use super::succession::heir;

/// A document is seen, policy chooses, and the hooks begin or the event is claimed.
const DEEP: usize = 2;

/// A plan looks at every open event, and each of its commands at the event's steps. Beyond this the driver's own plans
/// are enough.
const OPEN_AT_MOST: usize = 100;
const FORESEEN_AT_MOST: usize = 64;

/// The commands that are due when `told` is applied behind `appended`, which is in the log and not in `state` yet: what
/// the driver would propose, in the same order. Nothing before this leadership is in the log, and nothing more where it is
/// to go to another replica first.
pub fn foresee<'a>(
    state: &State,
    appended: impl IntoIterator<Item = &'a Entry>,
    told: &Entry,
    situation: &Situation,
) -> Vec<Command> {
    if situation.lead.is_none() || state.open.len() > OPEN_AT_MOST {
        return Vec::new();
    }
    let mut state = state.clone();
    for entry in appended {
        apply(&mut state, entry);
    }
    if apply(&mut state, told) != Verdict::Applied {
        return Vec::new();
    }
    let mut foreseen = Vec::new();
    for _ in 0..DEEP {
        if heir(&state, situation).is_some() {
            break;
        }
        let due = plan(&state, situation);
        let begins_to_lead = matches!(due.first(), Some(Command::Lead { .. }));
        if due.is_empty() || begins_to_lead || foreseen.len() + due.len() > FORESEEN_AT_MOST {
            break;
        }
        let fits = |command: &Command| {
            let entry = Entry { at: told.at, by: situation.me.clone(), command: command.clone() };
            apply(&mut state, &entry) == Verdict::Applied
        };
        foreseen.extend(due.into_iter().filter(fits));
    }
    foreseen
}

/// Whether it is what events most often wait for; those of a new leader wait for accounts. What the leader decides goes
/// to the log with all that is due beside it.
pub const fn brings_about(command: &Command) -> bool {
    matches!(
        command,
        Command::Report { .. }
            | Command::Settle { .. }
            | Command::Account { .. }
            | Command::Ask { .. }
            | Command::Drill { .. }
    )
}
