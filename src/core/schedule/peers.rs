//! The other VMs on which a hook may run.

use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::state::State;
use crate::model::workload::{Intent, Member, Phase, RunsOn};
use crate::schedule::step::Step;

/// Whether the VM may run the step, as far as the log knows: restore hooks run on the member's own VM, and a peer that
/// replaces an affected VM is not affected itself. A VM may undo its own attempt unless the event is about to stop the
/// VM.
pub(crate) fn may_run_on(state: &State, event: &Event, step: &Step<'_>, intent: Intent, vm: &VmName) -> bool {
    let is_home = *vm == step.member.vm;
    let is_free = !event.affects(vm) || (intent == Intent::Undo && (event.stage().is_over() || !event.is_under_way()));
    let is_peer = || is_free && state.hook_run_on(vm, &step.member, step.id).is_some();
    match step.hook.runs_on {
        RunsOn::Peer | RunsOn::Any if step.id.phase >= Phase::Restore => is_home,
        RunsOn::Affected => is_home,
        RunsOn::Peer => !is_home && is_peer(),
        RunsOn::Any => is_home || is_peer(),
    }
}

/// Whether other VMs could run the step, and all of these VMs are out of service: no service is moved there.
pub(crate) fn lacks_a_place(state: &State, event: &Event, step: &Step<'_>) -> bool {
    let is_in_service = |vm: &VmName| {
        let own = Member { vm: vm.clone(), workload: step.member.workload.clone() };
        state.out_of_service_cause(&own).is_none()
    };
    let others = state.replicas.keys().filter(|vm| **vm != step.member.vm);
    let mut peers = others.filter(|vm| may_run_on(state, event, step, Intent::Run, vm)).peekable();
    step.hook.runs_on == RunsOn::Peer && peers.peek().is_some() && !peers.any(is_in_service)
}
