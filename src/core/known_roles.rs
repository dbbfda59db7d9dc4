//! The roles of workloads, as known at present. The last report of an unreachable replica may be old, and right after a
//! failover two replicas may report the primary.

use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::state::State;
use crate::model::time::{Timestamp, to_the_second};
use crate::model::workload::{Member, Phase, Role, Workload};
use crate::planning_input::PlanningInput;
use crate::schedule::affected_members::affected;
use alloc::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownRole {
    pub role: Role,
    /// The last report, if it does not count any more.
    pub last: Option<LastRole>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastRole {
    pub role: Role,
    /// Since when the replica is unreachable; `None` if another member of the group reports the primary too.
    pub unreachable_since: Option<Timestamp>,
}

/// A workload that is stopped with a VM of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenDown<'a> {
    pub member: Member,
    pub group: Option<&'a GroupName>,
    pub role: KnownRole,
}

pub fn known_role(state: &State, input: &PlanningInput, member: &Member) -> KnownRole {
    let role = state.role(member);
    let old = |unreachable_since| KnownRole {
        role: Role::Unknown,
        last: Some(LastRole { role, unreachable_since }).filter(|_| role != Role::Unknown),
    };
    if !input.reaches(&member.vm) {
        return old(input.peers.get(&member.vm).map(|contact| to_the_second(contact.since)));
    }
    if role == Role::Primary && has_rival(state, input, member) {
        return old(None);
    }
    KnownRole { role, last: None }
}

/// Whether another reachable member of a group with one primary reports the primary.
fn has_rival(state: &State, input: &PlanningInput, member: &Member) -> bool {
    let workload_of = |member: &Member| state.replicas.get(&member.vm)?.workload(&member.workload);
    let Some(group) = workload_of(member).and_then(|workload| workload.group.as_ref()) else { return false };
    let of_group = || state.workloads().filter(|(_, workload)| workload.group.as_ref() == Some(group));
    // A group whose primary can be moved has one primary.
    let moves = |workload: &Workload| workload.hooks.iter().any(|hook| hook.phase == Phase::Failover);
    of_group().any(|(_, workload)| moves(workload))
        && of_group().any(|(vm, workload)| {
            let other = workload.on(vm);
            other != *member && input.reaches(vm) && state.role(&other) == Role::Primary
        })
}

/// The workloads on the VMs of the event: an approval takes these down.
pub fn taken_down<'a>(state: &'a State, event: &Event, input: &PlanningInput) -> Vec<TakenDown<'a>> {
    let all = affected(state, event).into_iter();
    let shown = all.map(|(vm, workload)| {
        let member = workload.on(vm);
        let role = known_role(state, input, &member);
        TakenDown { member, group: workload.group.as_ref(), role }
    });
    shown.collect()
}

#[cfg(test)]
mod tests;
