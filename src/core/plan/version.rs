//! When the leader raises the cluster version.

use crate::model::command::{Command, RaiseVersion};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::{LeaderState, PlanningInput};

/// The leader's command, once everybody knows a higher version.
pub(crate) fn version_to_raise(state: &State, situation: &PlanningInput) -> Option<Command> {
    let version = agreed(situation.lead.as_ref()?, situation)?;
    (version > state.version).then_some(Command::RaiseVersion(RaiseVersion { version }))
}

/// The highest version that everybody knows; nothing where somebody has not said what it knows.
fn agreed(lead: &LeaderState, situation: &PlanningInput) -> Option<u64> {
    counting(lead, situation).map(|name| known_by(situation, name)).min().flatten()
}

/// Who has to know a version before the cluster is raised to it: every voter, and the learners that are not gone for good.
fn counting<'a>(lead: &'a LeaderState, situation: &'a PlanningInput) -> impl Iterator<Item = &'a VmName> {
    let is_gone = |name: &VmName| {
        situation.unreachable_for(name).is_some_and(|silence| silence >= situation.timing.replace_after)
    };
    lead.voters.iter().chain(situation.learners.iter().filter(move |name| !is_gone(name)))
}

/// A replica that is silent may come back with another program.
fn known_by(situation: &PlanningInput, name: &VmName) -> Option<u64> {
    situation.versions.get(name).copied().filter(|_| situation.reaches(name))
}
