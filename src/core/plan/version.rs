//! When the leader raises the cluster version.

use crate::model::command::{Command, RaiseVersion};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::{LeaderState, PlanningInput};

/// The leader's command, once all counted replicas know a higher version.
pub(crate) fn version_to_raise(state: &State, input: &PlanningInput) -> Option<Command> {
    let version = agreed(input.leader.as_ref()?, input)?;
    (version > state.version).then_some(Command::RaiseVersion(RaiseVersion { version }))
}

/// The highest version known to all counted replicas; `None` if the version of a replica is unknown.
fn agreed(lead: &LeaderState, input: &PlanningInput) -> Option<u64> {
    counting(lead, input).map(|name| known_by(input, name)).min().flatten()
}

/// Replicas that have to know a version before the cluster is raised: every voter, and learners not gone permanently.
fn counting<'a>(lead: &'a LeaderState, input: &'a PlanningInput) -> impl Iterator<Item = &'a VmName> {
    let is_gone =
        |name: &VmName| input.unreachable_for(name).is_some_and(|silence| silence >= input.timing.replace_after);
    lead.voters.iter().chain(input.learners.iter().filter(move |name| !is_gone(name)))
}

/// A silent replica may come back with another program.
fn known_by(input: &PlanningInput, name: &VmName) -> Option<u64> {
    input.versions.get(name).copied().filter(|_| input.reaches(name))
}
