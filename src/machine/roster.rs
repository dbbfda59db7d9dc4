//! Who is registered on a VM: the workloads of its replica's configuration, those that dial in at it, and how they do.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::apply::{Applied, registered};
use super::command::Ignored;
use super::departure;
use super::id::{VmName, WorkloadName};
use super::slot_changes;
use super::state::{Replica, State, WORKLOAD_LIMIT};
use super::time::Timestamp;
use super::workload::{Condition, Group, Member, Origin, Readiness, Workload};

pub(super) fn register(state: &mut State, by: &VmName, workloads: &[Workload], groups: &[Group]) -> Applied {
    if state.replicas.get(by).is_some_and(|replica| replica.workloads == workloads && replica.groups == groups) {
        return Err(Ignored::Repeated);
    }
    if !state.replicas.contains_key(by) {
        departure::part(state, by);
    }
    let known: BTreeSet<WorkloadName> =
        state.replicas.get(by).into_iter().flat_map(|replica| replica.effective()).map(|it| it.name.clone()).collect();
    let replica = Arc::make_mut(state.replicas.entry(by.clone()).or_default());
    (replica.workloads, replica.groups) = (workloads.into(), groups.into());
    forget_the_unknown(replica);
    for workload in workloads.iter().filter(|workload| !known.contains(&workload.name)) {
        if let Some(group) = &workload.group {
            slot_changes::replace_gone(state, &workload.on(by), group);
        }
    }
    Ok(())
}

/// Who dials in is connected.
pub(super) fn enlist(state: &mut State, by: &VmName, workload: &Workload) -> Applied {
    let now = state.now;
    let replica = registered(state, by)?;
    let workload = Workload { origin: Origin::Dialled, ..workload.clone() };
    let known = replica.dialled.get(&workload.name);
    if known.is_some_and(|known| *known == workload) && !replica.is_absent(&workload) {
        return Err(Ignored::Repeated);
    }
    if !replica.knows(&workload.name) && replica.effective().count() >= WORKLOAD_LIMIT {
        return Err(Ignored::TooManyWorkloads);
    }
    let condition = Condition { connected: true, ..replica.condition(&workload.name) };
    keep(replica, &workload.name, condition, now);
    let is_new = !replica.knows(&workload.name);
    replica.dialled.insert(workload.name.clone(), workload.clone());
    if let Some(group) = workload.group.as_ref().filter(|_| is_new) {
        slot_changes::replace_gone(state, &workload.on(by), group);
    }
    Ok(())
}

pub(super) fn delist(state: &mut State, by: &VmName, name: &WorkloadName) -> Applied {
    let replica = registered(state, by)?;
    if !replica.dialled.contains_key(name) {
        return Err(Ignored::Repeated);
    }
    replica.dialled.remove(name);
    // What it said of itself says nothing of the configured one that it stood for.
    replica.conditions.remove(name);
    replica.away.remove(name);
    replica.unready.remove(name);
    let is_left = !replica.knows(name);
    // Whoever signs off is no member any more, and nothing is owed to it.
    if is_left {
        state.slots.remove(&Member { vm: by.clone(), workload: name.clone() });
    }
    Ok(())
}

pub(super) fn note(state: &mut State, by: &VmName, conditions: &[(WorkloadName, Condition)]) -> Applied {
    let now = state.now;
    let replica = registered(state, by)?;
    let mut is_news = false;
    for (name, condition) in conditions {
        if replica.knows(name) && replica.condition(name) != *condition {
            keep(replica, name, *condition, now);
            is_news = true;
        }
    }
    if is_news { Ok(()) } else { Err(Ignored::Repeated) }
}

/// What is as without a word is not kept.
pub(super) fn keep(replica: &mut Replica, name: &WorkloadName, condition: Condition, now: Timestamp) {
    if condition == Condition::default() {
        replica.conditions.remove(name);
    } else {
        replica.conditions.insert(name.clone(), condition);
    }
    let mut since = |is_so: bool, times: fn(&mut Replica) -> &mut BTreeMap<WorkloadName, Timestamp>| {
        let times = times(replica);
        if is_so {
            times.entry(name.clone()).or_insert(now);
        } else {
            times.remove(name);
        }
    };
    since(!condition.connected, |replica| &mut replica.away);
    since(condition.readiness == Readiness::NotReady, |replica| &mut replica.unready);
}

fn forget_the_unknown(replica: &mut Replica) {
    let known: BTreeSet<WorkloadName> =
        replica.workloads.iter().map(|workload| workload.name.clone()).chain(replica.dialled.keys().cloned()).collect();
    replica.conditions.retain(|name, _| known.contains(name));
    replica.away.retain(|name, _| known.contains(name));
    replica.unready.retain(|name, _| known.contains(name));
}
