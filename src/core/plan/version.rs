//! When the leader raises the cluster version.

use crate::model::command::Command;
use crate::model::id::VmName;
use crate::model::state::State;
use crate::situation::{Lead, Situation};

/// The leader's command, once everybody knows a higher version.
pub(crate) fn to_raise(state: &State, situation: &Situation) -> Option<Command> {
    let version = agreed(situation.lead.as_ref()?, situation)?;
    (version > state.version).then_some(Command::Raise { version })
}

/// The highest version that everybody knows; nothing where somebody has not said what it knows.
fn agreed(lead: &Lead, situation: &Situation) -> Option<u64> {
    counting(lead, situation).map(|name| known_by(situation, name)).min().flatten()
}

/// Who has to know a version before the cluster is raised to it: every voter, and the learners that are not gone for good.
fn counting<'a>(lead: &'a Lead, situation: &'a Situation) -> impl Iterator<Item = &'a VmName> {
    let is_gone =
        |name: &VmName| situation.out_of_reach(name).is_some_and(|silence| silence >= situation.timing.replace_after);
    lead.voters.iter().chain(situation.learners.iter().filter(move |name| !is_gone(name)))
}

/// A replica that is silent may come back with another program.
fn known_by(situation: &Situation, name: &VmName) -> Option<u64> {
    situation.versions.get(name).copied().filter(|_| situation.reaches(name))
}
