//! Groups: their members, their limits, and the members that are out of service.

use crate::model::document::Source;
use crate::model::event::Event;
use crate::model::id::{GroupName, VmName};
use crate::model::slot::SlotCause;
use crate::model::state::State;
use crate::model::workload::Member;
use crate::schedule::affected_members::{affected, needed};
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The present availability of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupAvailability {
    pub group: GroupName,
    pub max_unavailable: usize,
    /// Each member with the cause of being out of service; `None` for a member in service.
    pub members: Vec<(Member, Option<SlotCause>)>,
}

/// The availability of every group with members.
pub fn group_availability(state: &State) -> Vec<GroupAvailability> {
    let groups: BTreeSet<&GroupName> = state.workloads().filter_map(|(_, workload)| workload.group.as_ref()).collect();
    let availability = |group: &GroupName| GroupAvailability {
        group: group.clone(),
        max_unavailable: max_unavailable(state, group),
        members: members(state, group).map(|member| (member.clone(), state.out_of_service_cause(&member))).collect(),
    };
    groups.into_iter().map(availability).collect()
}

pub(crate) fn members<'a>(state: &'a State, group: &'a GroupName) -> impl Iterator<Item = Member> + 'a {
    let of_group = state.workloads().filter(move |(_, workload)| workload.group.as_ref() == Some(group));
    of_group.map(|(vm, workload)| workload.on(vm))
}

/// The groups with a single member, with the member, in a cluster of several replicas. Nothing is concluded before every
/// replica has registered its workloads.
pub fn single_member_groups(state: &State, replicas: &[VmName]) -> Vec<(GroupName, Member)> {
    let are_known = replicas.len() > 1 && replicas.iter().all(|name| state.replicas.contains_key(name));
    let groups: BTreeSet<&GroupName> = state.workloads().filter_map(|(_, workload)| workload.group.as_ref()).collect();
    let only_member = |group: &GroupName| {
        let mut members = members(state, group);
        let only = members.next()?;
        members.next().is_none().then(|| (group.clone(), only))
    };
    groups.into_iter().filter(|_| are_known).filter_map(only_member).collect()
}

/// The smallest limit in any replica's configuration; 1 if no replica configures the group.
pub fn max_unavailable(state: &State, group: &GroupName) -> usize {
    let configured = state.replicas.values().flat_map(|replica| &replica.groups).filter(|each| each.name == *group);
    let least = configured.map(|each| each.max_unavailable).min().unwrap_or(1).max(1);
    usize::try_from(least).unwrap_or(usize::MAX)
}

/// Whether events for these members of the cluster would affect members of the same group. An unregistered replica
/// could have a member of any group.
pub fn share_a_group(state: &State, vms: &[VmName], others: &[VmName]) -> bool {
    let is_unknown = |vm: &VmName| !state.replicas.contains_key(vm);
    if vms.iter().chain(others).any(is_unknown) {
        return true;
    }
    let groups_of = |vms: &[VmName]| -> BTreeSet<&GroupName> {
        let of_vms = state.workloads().filter(|(vm, _)| vms.contains(vm));
        of_vms.filter_map(|(_, workload)| workload.group.as_ref()).collect()
    };
    !groups_of(vms).is_disjoint(&groups_of(others))
}

/// Every member filling a slot of the group (R3), with the cause; includes members no longer registered.
pub(crate) fn filled(state: &State, group: &GroupName) -> BTreeMap<Member, SlotCause> {
    let unregistered = state.slots.iter().filter(|(_, slot)| slot.group.as_ref() == Some(group));
    let all = members(state, group).chain(unregistered.map(|(member, _)| member.clone()));
    all.filter_map(|member| state.out_of_service_cause(&member).map(|cause| (member, cause))).collect()
}

/// Whether the event takes the last members of the group that are in service.
pub fn takes_last_members(state: &State, event: &Event, group: &GroupName) -> bool {
    let own = by_group(state, event).remove(group).unwrap_or_default();
    let (taken, others): (Vec<Member>, Vec<Member>) = members(state, group).partition(|member| own.contains(member));
    let is_in_service = |member: &Member| state.out_of_service_cause(member).is_none();
    taken.iter().any(is_in_service) && !others.iter().any(is_in_service)
}

/// Members affected by an event, by group.
pub(crate) fn by_group<'a>(state: &'a State, event: &Event) -> BTreeMap<&'a GroupName, Vec<Member>> {
    let mut groups: BTreeMap<&GroupName, Vec<Member>> = BTreeMap::new();
    for (member, group) in needed(state, event) {
        if let Some(group) = group {
            groups.entry(group).or_default().push(member);
        }
    }
    groups
}

/// The groups of which an event of the platform takes several VMs at once, with these VMs: the VMs are on one host.
pub fn on_one_host<'a>(state: &'a State, event: &Event) -> Vec<(&'a GroupName, BTreeSet<VmName>)> {
    let is_of_host = event.announcement.source == Source::Platform && !event.is_drill();
    let groups = by_group(state, event).into_iter().filter(|_| is_of_host);
    let vms = groups.map(|(group, members)| (group, members.into_iter().map(|member| member.vm).collect()));
    vms.filter(|(_, vms): &(_, BTreeSet<VmName>)| vms.len() > 1).collect()
}

/// Groups of the members affected by an event; reported ahead of the last call.
pub fn affected_groups<'a>(state: &'a State, event: &Event) -> BTreeSet<&'a GroupName> {
    affected(state, event).into_iter().filter_map(|(_, workload)| workload.group.as_ref()).collect()
}
