//! The roles of workloads, as known at present. The last report of an unreachable replica may be old, and right after a
//! failover two replicas may report the primary.

use crate::model::attempt::Attempt;
use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::state::State;
use crate::model::time::{Timestamp, to_the_second};
use crate::model::workload::{Member, Phase, Role, Workload};
use crate::planning_input::PlanningInput;
use crate::schedule::affected_members::affected;
use alloc::collections::BTreeSet;
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

/// What is wrong with the primary of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrimaryFault {
    /// Every member reports that it is no primary.
    Absent(Vec<Member>),
    /// These members report the primary at the same time.
    Several(Vec<Member>),
}

/// The groups without a primary, or with several, by the reports of all members. Nothing is concluded while a member is
/// unreachable or has no known role, and while an event of the group moves the primary.
pub fn primary_faults(state: &State, input: &PlanningInput) -> Vec<(GroupName, PrimaryFault)> {
    let groups: BTreeSet<&GroupName> = state.workloads().filter_map(|(_, workload)| workload.group.as_ref()).collect();
    let fault = |group: &GroupName| Some((group.clone(), primary_fault(state, input, group)?));
    groups.into_iter().filter_map(fault).collect()
}

fn primary_fault(state: &State, input: &PlanningInput, group: &GroupName) -> Option<PrimaryFault> {
    let of_group = || state.workloads().filter(|(_, workload)| workload.group.as_ref() == Some(group));
    let moves = |workload: &Workload| workload.hooks.iter().any(|hook| hook.phase == Phase::Failover);
    let members: Vec<Member> = of_group().map(|(vm, workload)| workload.on(vm)).collect();
    let is_certain = members.iter().all(|it| input.reaches(&it.vm) && state.role(it) != Role::Unknown);
    if members.len() < 2 || !is_certain || !of_group().any(|(_, workload)| moves(workload)) {
        return None;
    }
    let is_of_group = |attempt: &Attempt| members.contains(&attempt.member) && attempt.outcome.is_none();
    if state.open_events().any(|event| event.attempts.iter().any(is_of_group)) {
        return None;
    }
    let primaries: Vec<Member> = members.iter().filter(|it| state.role(it) == Role::Primary).cloned().collect();
    match primaries.len() {
        0 => Some(PrimaryFault::Absent(members)),
        1 => None,
        _ => Some(PrimaryFault::Several(primaries)),
    }
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
