//! The roles of workloads, as known at present. The last report of an unreachable replica may be old, and right after a
//! failover two replicas may report the primary.

use crate::model::attempt::{Attempt, Outcome};
use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::time::{Timestamp, to_the_second};
use crate::model::workload::{Intent, Member, Phase, Role, Workload};
use crate::planning_input::PlanningInput;
use crate::schedule::affected_members::affected;
use crate::schedule::missing::failovers_left;
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
    /// The start of the silence of the replica or the session; `None` if another member of the group reports the primary
    /// too.
    pub unreachable_since: Option<Timestamp>,
}

/// A workload that is stopped with a VM of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenDown<'a> {
    pub member: Member,
    pub group: Option<&'a GroupName>,
    pub role: KnownRole,
    /// The role is not known, and no reachable member of the group reports the primary.
    pub may_be_primary: bool,
    /// A failover of the member runs, or is still to run.
    pub failover_left: bool,
}

pub fn known_role(state: &State, input: &PlanningInput, member: &Member) -> KnownRole {
    let role = state.role(member);
    if role == Role::Primary && has_handed_over(state, member) && has_rival(state, input, member) {
        return KnownRole { role: Role::Unknown, last: None };
    }
    let old = |unreachable_since| KnownRole {
        role: Role::Unknown,
        last: Some(LastRole { role, unreachable_since }).filter(|_| role != Role::Unknown),
    };
    if !input.reaches(&member.vm) {
        // An isolated replica knows the start of a voter's silence only as the loss of the leader.
        let since = input.peers.get(&member.vm).map(|contact| contact.since);
        let since = since.or(input.isolated.as_ref().map(|isolated| isolated.since)).unwrap_or(input.now);
        return old(Some(to_the_second(since)));
    }
    // A session tells its role while it is connected: another member may be the primary since.
    if let Some(since) = state.away_since(member) {
        return old(Some(to_the_second(since)));
    }
    if role == Role::Primary && has_rival(state, input, member) {
        return old(None);
    }
    KnownRole { role, last: None }
}

/// Whether the member reports the primary. A member with a failover that is done has stopped, and its report may be old,
/// as the report of a disconnected session.
fn reports_primary(state: &State, member: &Member) -> bool {
    state.role(member) == Role::Primary && !has_handed_over(state, member) && state.away_since(member).is_none()
}

/// Whether the member is out of service after a failover that is done.
fn has_handed_over(state: &State, member: &Member) -> bool {
    let slot = state.slots.get(member).filter(|slot| matches!(slot.state, SlotState::Leaving | SlotState::Out));
    let is_done_failover = |attempt: &Attempt, slot: &Slot| {
        let is_own = attempt.member == *member && attempt.stint == slot.stint && attempt.intent != Intent::Undo;
        is_own && attempt.hook.phase == Phase::Failover && matches!(attempt.outcome, Some((Outcome::Done, _)))
    };
    let mut attempts = state.open_events().flat_map(|event| &event.attempts);
    slot.is_some_and(|slot| attempts.any(|attempt| is_done_failover(attempt, slot)))
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
            other != *member && input.reaches(vm) && reports_primary(state, &other)
        })
}

/// What is wrong with the primary of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrimaryFault {
    /// Every member reports that it is no primary.
    Absent(Vec<Member>),
    /// Some members in service report no role, and all others that they are no primary.
    Unknown { silent: Vec<Member>, others: Vec<Member> },
    /// These members report the primary at the same time.
    Several(Vec<Member>),
}

/// The groups without a known primary, or with several. Nothing is concluded while a member is unreachable or no member has
/// a known role, and while an event of the group moves the primary.
pub fn primary_faults(state: &State, input: &PlanningInput) -> Vec<(GroupName, PrimaryFault)> {
    let groups: BTreeSet<&GroupName> = state.workloads().filter_map(|(_, workload)| workload.group.as_ref()).collect();
    let fault = |group: &GroupName| Some((group.clone(), primary_fault(state, input, group)?));
    groups.into_iter().filter_map(fault).collect()
}

fn primary_fault(state: &State, input: &PlanningInput, group: &GroupName) -> Option<PrimaryFault> {
    let of_group = || state.workloads().filter(|(_, workload)| workload.group.as_ref() == Some(group));
    let moves = |workload: &Workload| workload.hooks.iter().any(|hook| hook.phase == Phase::Failover);
    let members: Vec<Member> = of_group().map(|(vm, workload)| workload.on(vm)).collect();
    let are_all_there = members.iter().all(|it| input.reaches(&it.vm) && state.away_since(it).is_none());
    if members.len() < 2 || !are_all_there || !of_group().any(|(_, workload)| moves(workload)) {
        return None;
    }
    let is_of_group = |attempt: &Attempt| members.contains(&attempt.member) && attempt.outcome.is_none();
    if state.open_events().any(|event| event.attempts.iter().any(is_of_group)) {
        return None;
    }
    let mut primaries: Vec<Member> = members.iter().filter(|it| state.role(it) == Role::Primary).cloned().collect();
    if primaries.iter().any(|it| !has_handed_over(state, it)) {
        primaries.retain(|it| !has_handed_over(state, it));
    }
    match primaries.len() {
        0 => {
            let (silent, others): (Vec<_>, Vec<_>) =
                members.into_iter().partition(|it| state.role(it) == Role::Unknown);
            // A member out of service may be stopped by its event.
            let is_out = silent.iter().any(|member| state.slots.contains_key(member));
            match (silent.is_empty(), others.is_empty()) {
                (true, _) => Some(PrimaryFault::Absent(others)),
                (false, false) if !is_out => Some(PrimaryFault::Unknown { silent, others }),
                (false, _) => None,
            }
        }
        1 => None,
        _ => Some(PrimaryFault::Several(primaries)),
    }
}

/// Whether the workload's group has one primary, and no reachable member reports the primary.
fn lacks_primary(state: &State, input: &PlanningInput, workload: &Workload) -> bool {
    let of_group = || state.workloads().filter(|(_, other)| other.group.is_some() && other.group == workload.group);
    let moves = |other: &Workload| other.hooks.iter().any(|hook| hook.phase == Phase::Failover);
    of_group().any(|(_, other)| moves(other))
        && !of_group().any(|(vm, other)| input.reaches(vm) && reports_primary(state, &other.on(vm)))
}

/// The workloads on the VMs of the event: an approval takes these down.
pub fn taken_down<'a>(state: &'a State, event: &Event, input: &PlanningInput) -> Vec<TakenDown<'a>> {
    let all = affected(state, event).into_iter();
    let left = failovers_left(state, event, input.now);
    let shown = all.map(|(vm, workload)| {
        let member = workload.on(vm);
        let role = known_role(state, input, &member);
        let may_be_primary =
            role == KnownRole { role: Role::Unknown, last: None } && lacks_primary(state, input, workload);
        // Before the choice of the treatment every hook may be needed.
        let failover_left = event.treatment.is_none() || left.contains(&member);
        TakenDown { member, group: workload.group.as_ref(), role, may_be_primary, failover_left }
    });
    shown.collect()
}

#[cfg(test)]
mod tests;
