//! The hooks of an event that are not done: still to come, or missing at its start.

use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::workload::{Member, Phase, Role, Workload};
use crate::schedule::affected_members::affected;
use crate::schedule::required;
use crate::schedule::step::Step;
use crate::schedule::step_state::{self, StepState};
use alloc::vec::Vec;

/// The required hooks without a good outcome, while the event is under way. Empty for an event with the approval of an
/// operator, who saw the skipped hooks. Without the hooks of VMs that an isolated replica could not reach when it
/// approved: nobody could run these hooks.
///
/// A failover is not missing if another member is the primary, whoever moved the primary.
pub fn missing_hooks(state: &State, event: &Event) -> Vec<(Member, HookId)> {
    let is_chosen = event.is_approved_by_operator() || event.has_isolated_approval_of_operator();
    if event.stage() != Stage::Started || event.is_drill() || is_chosen {
        return Vec::new();
    }
    let steps = required::required_steps(state, event);
    let open = steps.iter().filter(|step| !step_state::is_satisfied(event, step, state.now));
    let is_reached = |step: &&Step<'_>| {
        event.isolated_approvals.iter().all(|approval| !approval.out_of_reach.contains(&step.member.vm))
    };
    let missing = open
        .filter(is_reached)
        .filter(|step| step.id.phase != Phase::Failover || !has_moved(state, event, &step.member));
    missing.map(|step| (step.member.clone(), step.id)).collect()
}

/// The hooks before the approval that have not begun yet, in the order of each workload.
pub fn hooks_to_come(state: &State, event: &Event) -> Vec<(Member, HookId)> {
    if event.stage() > Stage::Preparing || event.is_approved_by_operator() || event.has_isolated_approval() {
        return Vec::new();
    }
    let is_to_come = |step: &Step<'_>| {
        step.forward().next().is_none()
            && matches!(step_state::step_state(event, step, state.now), StepState::Due { .. })
    };
    let steps = required::required_steps(state, event).into_iter().filter(is_to_come);
    steps.map(|step| (step.member.clone(), step.id)).collect()
}

/// Whether a member of the group outside the event reports the primary.
fn has_moved(state: &State, event: &Event, member: &Member) -> bool {
    let mut own = affected(state, event).into_iter();
    let Some((_, workload)) = own.find(|(vm, workload)| workload.on(vm) == *member) else { return false };
    let is_of_group = |other: &Workload| other.group.is_some() && other.group == workload.group;
    state
        .workloads()
        .any(|(vm, other)| is_of_group(other) && !event.affects(vm) && state.role(&other.on(vm)) == Role::Primary)
}
