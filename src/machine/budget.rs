//! The disruption budget (`behaviour.md` 8): how many members of a group may be unavailable at once.
//!
//! An event alone is never held by its own size: one approval counts for every machine it names, and to wait would
//! not make it smaller. It waits for others only.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

use super::event::Event;
use super::id::{EventId, GroupName, VmName};
use super::lifecycle::Stage;
use super::state::State;
use super::workload::Member;

/// What an event waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    pub group: GroupName,
    /// Never empty.
    pub by: Vec<Taker>,
}

/// What takes members of a group away.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Taker {
    /// It is between claim and the end of restoring, or ready and earlier in the order of NotBefore.
    Event(EventId),
    /// It is out of reach.
    Replica(VmName),
    /// It may be approving one of these events alone.
    Suspect(VmName),
}

impl fmt::Display for Taker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(id) => write!(f, "{id}"),
            Self::Replica(name) => write!(f, "{name}"),
            Self::Suspect(name) => write!(f, "{name} (may be approving alone)"),
        }
    }
}

/// A group as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    pub group: GroupName,
    pub max_unavailable: usize,
    /// Each with what takes it away; nothing while it is available.
    pub members: Vec<(Member, Option<Taker>)>,
}

/// Every group that has members. `lost` are the replicas out of reach.
pub fn standings(state: &State, lost: &BTreeSet<VmName>) -> Vec<Standing> {
    let groups: BTreeSet<&GroupName> = members(state).map(|(group, _)| group).collect();
    let taken = |member: &Member| {
        let taking = state.open_events().find(|event| !event.is_drill() && is_taking(event) && takes(event, member));
        let by_event = taking.map(|event| Taker::Event(event.announcement.id.clone()));
        by_event.or_else(|| lost.contains(&member.vm).then(|| Taker::Replica(member.vm.clone())))
    };
    let standing = |group: &GroupName| Standing {
        group: group.clone(),
        max_unavailable: max_unavailable(state, group),
        members: members(state)
            .filter(|(of, _)| *of == group)
            .map(|(_, member)| (member.clone(), taken(&member)))
            .collect(),
    };
    groups.into_iter().map(standing).collect()
}

/// What an approval of the event would have to wait for. `lost` are the replicas out of reach, which the log does not
/// tell; `is_ready` says of another event that nothing but the budget stands between it and its claim.
pub fn held(state: &State, event: &Event, lost: &BTreeSet<VmName>, is_ready: impl Fn(&Event) -> bool) -> Option<Held> {
    let own: Vec<(&GroupName, Member)> = members(state).filter(|(_, member)| takes(event, member)).collect();
    // Somebody reboots machines that hang: that takes nothing more away.
    let is_revival = event.is_user_initiated() && own.iter().all(|(_, member)| lost.contains(&member.vm));
    let nobody = BTreeSet::new();
    let lost = if is_revival { &nobody } else { lost };
    let groups: BTreeSet<&GroupName> = own.iter().map(|(group, _)| *group).collect();
    groups.into_iter().find_map(|group| held_by_group(state, event, group, lost, &is_ready))
}

/// Other events alone, which are under way, stand between the event and the members of a group.
pub(super) fn held_by_events(state: &State, event: &Event, group: &GroupName) -> Option<Held> {
    held_by_group(state, event, group, &BTreeSet::new(), |_| false)
}

fn held_by_group(
    state: &State,
    event: &Event,
    group: &GroupName,
    lost: &BTreeSet<VmName>,
    is_ready: impl Fn(&Event) -> bool,
) -> Option<Held> {
    let members: Vec<Member> = members(state).filter(|(of, _)| *of == group).map(|(_, member)| member).collect();
    let own = |member: &&Member| takes(event, member);
    let mut unavailable: BTreeSet<&Member> = members.iter().filter(own).collect();
    let mut by = Vec::new();
    let is_suspicious = state.suspects().next().is_some();
    let mut is_doubtful = false;
    // A real event does not wait for a drill, which is putting back what it took.
    let others = state.open_events().filter(|other| !other.is_drill());
    for other in others.filter(|other| other.announcement.id != event.announcement.id) {
        let mut theirs = members.iter().filter(|member| takes(other, member)).peekable();
        let may_be_approved = is_suspicious && other.is_user_initiated() && !is_taking(other);
        let counts = is_taking(other) || may_be_approved || (is_before(other, event) && is_ready(other));
        if theirs.peek().is_some() && counts {
            is_doubtful |= may_be_approved;
            by.push(Taker::Event(other.announcement.id.clone()));
            unavailable.extend(theirs);
        }
    }
    for member in members.iter().filter(|member| lost.contains(&member.vm) && !own(member)) {
        let taker = Taker::Replica(member.vm.clone());
        if !by.contains(&taker) {
            by.push(taker);
        }
        unavailable.insert(member);
    }
    if is_doubtful {
        by.extend(state.suspects().cloned().map(Taker::Suspect));
    }
    let exceeds = unavailable.len() > max_unavailable(state, group);
    (exceeds && !by.is_empty()).then(|| Held { group: group.clone(), by })
}

/// Whether events for these members of the cluster would take members of the same group. One that has not registered
/// yet could hold any.
pub fn share_a_group(state: &State, vms: &[VmName], others: &[VmName]) -> bool {
    let is_unknown = |vm: &VmName| !state.replicas.contains_key(vm);
    if vms.iter().chain(others).any(is_unknown) {
        return true;
    }
    let groups_of = |vms: &[VmName]| -> BTreeSet<&GroupName> {
        members(state).filter(|(_, member)| vms.contains(&member.vm)).map(|(group, _)| group).collect()
    };
    !groups_of(vms).is_disjoint(&groups_of(others))
}

fn members(state: &State) -> impl Iterator<Item = (&GroupName, Member)> {
    state.workloads().filter_map(|(vm, workload)| Some((workload.group.as_ref()?, workload.on(vm))))
}

/// It is on a VM of the event, or the event has yet to put it back.
fn takes(event: &Event, member: &Member) -> bool {
    event.affects(&member.vm) || event.touched(member)
}

fn is_taking(event: &Event) -> bool {
    (Stage::Claimed..Stage::Closed).contains(&event.stage()) || event.is_taken_over()
}

fn is_before(event: &Event, other: &Event) -> bool {
    (event.notice_ends(), &event.announcement.id) < (other.notice_ends(), &other.announcement.id)
}

/// The least that any replica's configuration says; one where none names the group.
fn max_unavailable(state: &State, group: &GroupName) -> usize {
    let configured = state.replicas.values().flat_map(|replica| &replica.groups).filter(|each| each.name == *group);
    let least = configured.map(|each| each.max_unavailable).min().unwrap_or(1).max(1);
    usize::try_from(least).unwrap_or(usize::MAX)
}
