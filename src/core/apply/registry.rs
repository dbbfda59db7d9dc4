//! Registered workloads of a VM: configured workloads, session workloads, and the conditions of both.

use crate::apply::access::{Applied, registered};
use crate::apply::decommission;
use crate::apply::report;
use crate::apply::slots;
use crate::model::command::Rejection;
use crate::model::id::{VmName, WorkloadName};
use crate::model::state::{Replica, State, WORKLOAD_LIMIT};
use crate::model::time::Timestamp;
use crate::model::workload::{Condition, Group, Hook, Member, Origin, Phase, Readiness, Workload};
use crate::ownership::OwnershipError;
use crate::schedule::restore;
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(crate) fn register_workloads(state: &mut State, by: &VmName, workloads: &[Workload], groups: &[Group]) -> Applied {
    if state.replicas.get(by).is_some_and(|replica| replica.workloads == workloads && replica.groups == groups) {
        return Err(Rejection::Repeated);
    }
    let is_new = !state.replicas.contains_key(by);
    if is_new && state.is_excluded(by) {
        return Err(Rejection::NotYours);
    }
    if is_new {
        decommission::mark_departed(state, by);
    }
    let before = effective(state, by);
    let replica = Arc::make_mut(state.replicas.entry(by.clone()).or_default());
    (replica.workloads, replica.groups) = (workloads.into(), groups.into());
    let Replica { workloads: configured, sessions: dialled, .. } = replica;
    for dialled in dialled.values_mut() {
        *dialled = known_as(configured, dialled);
    }
    drop_unknown_workloads(replica);
    keep_owed_restores(state, by, &before);
    if is_new {
        report::reconsider_for_new_replica(state, by);
    }
    let is_new = |workload: &&Workload| before.iter().all(|known| known.name != workload.name);
    for workload in workloads.iter().filter(is_new) {
        if let Some(group) = &workload.group {
            slots::replace_decommissioned(state, &workload.on(by), group);
        }
    }
    Ok(())
}

/// Registers a session workload, and marks the workload as connected.
pub(crate) fn register_session(state: &mut State, by: &VmName, workload: &Workload) -> Applied {
    let now = state.now;
    match state.may_replace(by, workload) {
        Ok(()) if workload.is_session() => {}
        Err(OwnershipError::Changed { .. }) => return Err(Rejection::NotNow),
        Ok(()) | Err(_) => return Err(Rejection::NotYours),
    }
    let replica = registered(state, by)?;
    let workload = known_as(&replica.workloads, workload);
    let before: Vec<Workload> = replica.effective().cloned().collect();
    let known = replica.sessions.get(&workload.name);
    if known.is_some_and(|known| *known == workload) && !replica.is_absent(&workload) {
        return Err(Rejection::Repeated);
    }
    if !replica.knows(&workload.name) && replica.effective().count() >= WORKLOAD_LIMIT {
        return Err(Rejection::TooManyWorkloads);
    }
    let condition = Condition { connected: true, ..replica.condition(&workload.name) };
    keep(replica, &workload.name, condition, now);
    let is_new = !replica.knows(&workload.name);
    replica.sessions.insert(workload.name.clone(), workload.clone());
    keep_owed_restores(state, by, &before);
    if let Some(group) = workload.group.as_ref().filter(|_| is_new) {
        slots::replace_decommissioned(state, &workload.on(by), group);
    }
    Ok(())
}

/// A workload that is silent for longer than its `retain` stays registered until an event of its VM is over, because the
/// event would be approved without the workload's hooks. A member of a group also stays until its restore is done; any
/// other workload that is gone for good owes no restore.
pub(crate) fn deregister_session(state: &mut State, by: &VmName, name: &WorkloadName, forced: bool) -> Applied {
    let member = Member { vm: by.clone(), workload: name.clone() };
    let is_needed = !forced && state.is_being_prepared(&member);
    let replica = registered(state, by)?;
    if !replica.sessions.contains_key(name) {
        return Err(Rejection::Repeated);
    }
    if is_needed {
        return Err(Rejection::NotNow);
    }
    let before: Vec<Workload> = replica.effective().cloned().collect();
    replica.sessions.remove(name);
    // The role and connection state of a session do not apply to the configured workload of the same name.
    replica.conditions.remove(name);
    replica.disconnected.remove(name);
    replica.unready.remove(name);
    let is_left = !replica.knows(name);
    // A deregistered member is no longer a member, so no restore is owed.
    if is_left {
        state.slots.remove(&Member { vm: by.clone(), workload: name.clone() });
    }
    keep_owed_restores(state, by, &before);
    // The hooks of other workloads may have waited for this one.
    let now = state.now;
    for event in state.open.values_mut().filter(|event| event.is_undecided() && event.affects(by)) {
        Arc::make_mut(event).restart_budget(now);
    }
    Ok(())
}

pub(crate) fn update_conditions(state: &mut State, by: &VmName, conditions: &[(WorkloadName, Condition)]) -> Applied {
    let now = state.now;
    let before = effective(state, by);
    let replica = registered(state, by)?;
    let mut is_news = false;
    for (name, condition) in conditions {
        if replica.knows(name) && replica.condition(name) != *condition {
            keep(replica, name, *condition, now);
            is_news = true;
        }
    }
    if !is_news {
        return Err(Rejection::Repeated);
    }
    keep_owed_restores(state, by, &before);
    Ok(())
}

/// A configured workload is the fallback of the session workload of the same name: unnamed hooks of both at the same
/// position are one hook, as are hooks of the same name.
fn known_as(configured: &[Workload], dialled: &Workload) -> Workload {
    let stands_in = configured.iter().find(|workload| workload.name == dialled.name);
    let mut places: BTreeMap<Phase, usize> = BTreeMap::new();
    let known = |hook: &Hook| {
        let place = places.entry(hook.phase).or_default();
        let same = stands_in.and_then(|it| it.hooks.iter().filter(|it| it.phase == hook.phase).nth(*place));
        let own = u64::try_from(*place).unwrap_or(u64::MAX);
        *place += 1;
        Hook { command_digest: same.filter(|it| it.name.is_none()).map_or(own, |it| it.command_digest), ..hook.clone() }
    };
    Workload { hooks: dialled.hooks.iter().map(known).collect(), ..dialled.clone() }
}

fn effective(state: &State, vm: &VmName) -> Vec<Workload> {
    state.replicas.get(vm).into_iter().flat_map(|replica| replica.effective()).cloned().collect()
}

/// Keeps the former hooks of prepared workloads for their restore, whatever is registered from now on (`SPEC.md` 9.5).
/// A session workload registers its own hooks, and no other program can run these hooks.
fn keep_owed_restores(state: &mut State, vm: &VmName, before: &[Workload]) {
    let mut kept: Vec<Workload> = Vec::new();
    for was in before.iter().filter(|was| was.origin == Origin::Configured) {
        let member = was.on(vm);
        let Some(slot) = state.slots.get(&member).filter(|slot| slot.needs_restore) else { continue };
        let is = state.workload(&member);
        kept.extend(restore::owed_of(state, &member, slot, was, is).filter(|_| is != Some(was)));
    }
    if kept.is_empty() {
        return;
    }
    let Ok(replica) = registered(state, vm) else { return };
    for mut owed in kept {
        if let Some(known) = replica.owed_workloads.remove(&owed.name) {
            // Hooks owed before, and still owed.
            let is_known = |hook: &Hook| owed.hooks.iter().any(|it| it.is_same(hook));
            let earlier: Vec<Hook> = known.hooks.into_iter().filter(|hook| !is_known(hook)).collect();
            owed.hooks.splice(0..0, earlier);
        }
        replica.owed_workloads.insert(owed.name.clone(), owed);
    }
}

/// Drops owed hooks of restored members.
pub(crate) fn drop_owed_restores(state: &mut State) {
    let slots = &state.slots;
    for (vm, replica) in &mut state.replicas {
        let is_owed = |workload: &Workload| slots.get(&workload.on(vm)).is_some_and(|slot| slot.needs_restore);
        if !replica.owed_workloads.values().all(is_owed) {
            Arc::make_mut(replica).owed_workloads.retain(|_, workload| is_owed(workload));
        }
    }
}

/// Sets a workload's condition. Default conditions are not stored.
pub(crate) fn keep(replica: &mut Replica, name: &WorkloadName, condition: Condition, now: Timestamp) {
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
    since(!condition.connected, |replica| &mut replica.disconnected);
    since(condition.readiness == Readiness::NotReady, |replica| &mut replica.unready);
}

fn drop_unknown_workloads(replica: &mut Replica) {
    let known: BTreeSet<WorkloadName> = replica
        .workloads
        .iter()
        .map(|workload| workload.name.clone())
        .chain(replica.sessions.keys().cloned())
        .collect();
    replica.conditions.retain(|name, _| known.contains(name));
    replica.disconnected.retain(|name, _| known.contains(name));
    replica.unready.retain(|name, _| known.contains(name));
}
