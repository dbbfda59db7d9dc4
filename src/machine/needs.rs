//! Which hooks an event needs, in the order in which those of one workload run. Derived from what is registered, noted
//! of the workloads, chosen for the event and tried.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cell::LazyCell;

use super::event::Event;
use super::id::{GroupName, VmName};
use super::left_out::{LeftOut, left_out};
use super::policy::Action;
use super::state::State;
use super::workload::{Hook, HookId, Member, OnAbsent, Phase, Role, Workload};

/// One hook of one affected workload.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub member: Member,
    pub id: HookId,
    pub hook: &'a Hook,
    /// The workload dials in and is away: what that means.
    pub away: Option<OnAbsent>,
}

/// The hooks that prepare the affected workloads; those of one workload stand in the order in which they run.
pub fn preparing<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    let needed = considered(state, event).into_iter().filter(|(_, left_out)| left_out.is_none());
    needed.map(|(step, _)| step).collect()
}

/// Every hook before the event of those it affects, where it is prepared at all; `None`: the event needs it.
pub(super) fn considered<'a>(state: &'a State, event: &Event) -> Vec<(Step<'a>, Option<LeftOut>)> {
    let Some(treatment) = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare) else {
        return Vec::new();
    };
    let led = LazyCell::new(|| led(state, event));
    let mut found = Vec::new();
    for (vm, workload) in affected(state, event) {
        // Many that dial in only want to know.
        if workload.hooks.is_empty() {
            continue;
        }
        let member = workload.on(vm);
        let is_led = || workload.group.as_ref().is_some_and(|group| led.contains(group));
        let away = away(state, &member, workload);
        for phase in Phase::ALL.into_iter().filter(|phase| *phase < Phase::Restore) {
            found.extend(workload.hooks_of(phase).map(|(id, hook)| {
                let step = Step { member: member.clone(), id, hook, away };
                let why = left_out(state, event, treatment, &step, is_led);
                (step, why)
            }));
        }
    }
    found
}

/// The groups of which an affected member is known to be the primary.
fn led<'a>(state: &'a State, event: &Event) -> BTreeSet<&'a GroupName> {
    let grouped = affected(state, event).filter_map(|(vm, workload)| Some((workload.group.as_ref()?, vm, workload)));
    let primaries = grouped.filter(|(_, vm, workload)| state.role(&workload.on(vm)) == Role::Primary);
    primaries.map(|(group, ..)| group).collect()
}

pub(super) fn affected<'a>(state: &'a State, event: &Event) -> impl Iterator<Item = (&'a VmName, &'a Workload)> {
    state.workloads().filter(|(vm, _)| event.affects(vm))
}

/// The workload dials in and is away: what that means.
pub(super) fn away(state: &State, member: &Member, workload: &Workload) -> Option<OnAbsent> {
    let is_absent = state.replicas.get(&member.vm).is_some_and(|replica| replica.is_absent(workload));
    is_absent.then_some(workload.on_absent)
}
