//! The replica that runs a hook, and for how long the leader waits for an unreachable replica.

use crate::assignments::vms_to_avoid;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Phase, RunsOn};
use crate::planning_input::PlanningInput;
use crate::schedule::peers::may_run_on;
use crate::schedule::step::Step;
use alloc::vec::Vec;

/// Time after which hooks bound to this replica are no longer waited for; `None` while the replica answers.
pub(crate) fn unreachable_replica_given_up_at(replica: &VmName, input: &PlanningInput) -> Option<Timestamp> {
    if !input.members.contains(replica) {
        return Some(input.now);
    }
    let contact = input.peers.get(replica).filter(|contact| !contact.reachable)?;
    Some(contact.since.plus(input.timing.takeover_after))
}

/// The replica that can run a step now.
pub(crate) fn replica_for_step(
    state: &State,
    event: &Event,
    step: &Step<'_>,
    intent: Intent,
    input: &PlanningInput,
) -> Option<VmName> {
    let own = &step.member.vm;
    // Only a replica that is back and has reported knows that the event is over.
    let is_back = state.replicas.get(own).is_some_and(|replica| replica.stale_since.is_none());
    let can_run_at_home =
        input.reaches(own) && step.when_disconnected.is_none() && (is_back || !event.stage().is_over());
    if step.id.phase >= Phase::Restore {
        return can_run_at_home.then(|| own.clone());
    }
    match step.hook.runs_on {
        RunsOn::Affected => can_run_at_home.then(|| own.clone()),
        RunsOn::Any if can_run_at_home && event.stage() != Stage::Started => Some(own.clone()),
        RunsOn::Any | RunsOn::Peer => peer(state, event, step, intent, input),
    }
}

/// An unaffected replica whose VM has the same workload of the same group with the same hook. No run begins on a VM to
/// be avoided; confirmation and undo of a hook are possible there.
fn peer(state: &State, event: &Event, step: &Step<'_>, intent: Intent, input: &PlanningInput) -> Option<VmName> {
    let is_there = |name: &VmName| {
        let replica = state.replicas.get(name);
        let own = replica.and_then(|replica| Some((replica, replica.workload(&step.member.workload)?)));
        own.is_some_and(|(replica, own)| own.group.is_some() && !replica.is_absent(own))
    };
    let fits = |name: &&VmName| {
        let is_other = **name != step.member.vm && is_there(name) && input.reaches(name);
        is_other && may_run_on(state, event, step, intent, name)
    };
    let mut fitting = input.members.iter().filter(fits).peekable();
    fitting.peek()?;
    let avoided = if intent == Intent::Run { vms_to_avoid(state, input, &step.member) } else { Vec::new() };
    fitting.find(|name| !avoided.contains(name)).cloned()
}
