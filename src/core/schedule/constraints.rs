//! Hooks waiting for other hooks: workloads with `after`, hooks of several events for one workload, exclusive hooks,
//! failovers of one group.

use crate::model::attempt::Attempt;
use crate::model::event::Event;
use crate::model::id::WorkloadName;
use crate::model::state::State;
use crate::model::workload::{Intent, Member, Phase};
use crate::schedule::step::Next;
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Workloads in a cycle of `after`, as registered on any VMs. Dependencies between these workloads are ignored, because
/// the workloads would wait forever.
pub fn dependency_cycles(state: &State) -> BTreeSet<&WorkloadName> {
    let mut after: BTreeMap<&WorkloadName, BTreeSet<&WorkloadName>> = BTreeMap::new();
    for (_, workload) in state.workloads().filter(|(_, workload)| !workload.after.is_empty()) {
        after.entry(&workload.name).or_default().extend(&workload.after);
    }
    after.keys().filter(|name| reaches(&after, name, name)).copied().collect()
}

fn reaches(after: &BTreeMap<&WorkloadName, BTreeSet<&WorkloadName>>, from: &WorkloadName, to: &WorkloadName) -> bool {
    let mut seen = BTreeSet::new();
    let mut ahead: Vec<&WorkloadName> = after.get(from).into_iter().flatten().copied().collect();
    while let Some(name) = ahead.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            ahead.extend(after.get(name).into_iter().flatten());
        }
    }
    false
}

/// Workloads that a member waits for. A dependency between two workloads is ignored if each is in a cycle.
pub(crate) fn workloads_waited_for<'a>(
    state: &'a State,
    member: &Member,
    is_in_a_circle: impl Fn(&WorkloadName) -> bool,
) -> impl Iterator<Item = &'a WorkloadName> {
    let named = state.workload(member).into_iter().flat_map(|workload| &workload.after);
    named.filter(move |name| !(is_in_a_circle(name) && is_in_a_circle(&member.workload)))
}

/// Running attempts of all open events: a second hook for the same workload would collide with such an attempt.
pub(crate) fn running(state: &State) -> impl Iterator<Item = (&Event, &Attempt)> {
    let attempts = state.open_events().flat_map(|event| event.attempts.iter().map(move |attempt| (event, attempt)));
    attempts.filter(|(_, attempt)| attempt.outcome.is_none())
}

/// Members with a running attempt.
pub(crate) fn busy(state: &State) -> BTreeSet<&Member> {
    running(state).map(|(_, attempt)| &attempt.member).collect()
}

/// Removes steps that must not run beside a running attempt, or beside an earlier step of `next`.
pub(crate) fn enforce_exclusion(state: &State, next: &mut Vec<Next<'_>>) {
    let mut begun: Vec<(Member, Phase)> = Vec::new();
    next.retain(|next| {
        let (member, phase) = (&next.step.member, next.step.id.phase);
        let waits = is_beside_a_failover(state, member, phase, &begun)
            || (next.intent == Intent::Run
                && next.step.hook.exclusive
                && is_beside_an_exclusive(state, member, phase, &begun));
        if !waits {
            begun.push((member.clone(), phase));
        }
        !waits
    });
}

/// In one group at most one failover runs at a time, over all events (R8); confirmation and undo of a failover count as
/// well.
fn is_beside_a_failover(state: &State, member: &Member, phase: Phase, begun: &[(Member, Phase)]) -> bool {
    let group_of = |member: &Member| state.workload(member).and_then(|workload| workload.group.as_ref());
    let Some(group) = group_of(member).filter(|_| phase == Phase::Failover) else {
        return false;
    };
    let is_rival = |other: &Member| group_of(other) == Some(group);
    let mut runs = running(state).filter(|(_, attempt)| attempt.hook.phase == Phase::Failover);
    let mut starts = begun.iter().filter(|(_, phase)| *phase == Phase::Failover);
    runs.any(|(_, attempt)| is_rival(&attempt.member)) || starts.any(|(other, _)| is_rival(other))
}

/// Whether another exclusive hook of the same workload name and phase runs or starts, for any event.
fn is_beside_an_exclusive(state: &State, member: &Member, phase: Phase, begun: &[(Member, Phase)]) -> bool {
    let attempts = state.open_events().flat_map(|event| &event.attempts);
    let mut runs = attempts.filter(|each| {
        let is_same = each.member.workload == member.workload && each.hook.phase == phase;
        is_same && each.outcome.is_none() && state.hook(&each.member, each.hook).is_some_and(|hook| hook.exclusive)
    });
    let is_same = |(other, of): &(Member, Phase)| other.workload == member.workload && *of == phase;
    runs.next().is_some() || begun.iter().any(is_same)
}
