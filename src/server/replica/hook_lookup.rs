//! Finds the call of a hook on this VM: the session of the workload, otherwise the command of the configuration.

use super::cluster::ClusterHandle;
use super::former_hooks::Former;
use super::hook_calls::Configured;
use crate::hooks::HookCall;
use crate::hooks::session::Dispatch;
use allclear_core::model::attempt::Attempt;
use allclear_core::model::state::State;
use allclear_core::model::workload::Intent;

/// The commands of hooks: from the configuration, and from former configurations whose hooks are still due.
pub struct KnownCalls {
    pub configured: Configured,
    pub former: Former,
}

pub(super) fn call(
    known: &KnownCalls,
    cluster: &ClusterHandle,
    attempt: &Attempt,
    is_left_over: bool,
) -> Option<HookCall> {
    let (state, name) = (cluster.state(), &attempt.member.workload);
    let id = state.hook_run_on(&cluster.node.name, &attempt.member, attempt.hook);
    let workload = state.replicas.get(&cluster.node.name).and_then(|replica| replica.workload(name));
    let dials_in = workload.filter(|workload| workload.is_session());
    // Hooks of the registration under which the member was taken out are run by this replica.
    if dials_in.is_some_and(|workload| id.is_none_or(|id| workload.hook(id).is_some())) {
        return Some(HookCall::Session(Dispatch { is_left_over, deadline: attempt.deadline }));
    }
    let id = id?;
    let calls = known.configured.get(&(name.clone(), id)).cloned().or_else(|| known.former.calls(name, id))?;
    let command = match attempt.intent {
        Intent::Run => Some(calls.run),
        Intent::Confirm => calls.confirm,
        Intent::Undo => calls.undo,
    };
    command.map(HookCall::Command)
}

/// The position of the hook among the hooks of the same phase on this VM.
pub(super) fn place_of(state: &State, cluster: &ClusterHandle, attempt: &Attempt) -> usize {
    let workload =
        state.replicas.get(&cluster.node.name).and_then(|replica| replica.workload(&attempt.member.workload));
    let id = state.hook_run_on(&cluster.node.name, &attempt.member, attempt.hook);
    workload.zip(id).and_then(|(workload, id)| workload.place_of(id)).unwrap_or_default()
}
