//! The way to each hook of this VM: the workload itself where it has a session, else the command of the configuration.

use super::context::Context;
use super::former_hooks::Former;
use super::hook_calls::Configured;
use crate::hooks::HookCall;
use crate::hooks::session::Dispatch;
use allclear_core::model::attempt::Attempt;
use allclear_core::model::workload::Intent;

pub(super) fn call(
    configured: &Configured,
    former: &Former,
    context: &Context,
    attempt: &Attempt,
    is_inherited: bool,
) -> Option<HookCall> {
    let (state, name) = (context.state(), &attempt.member.workload);
    let id = state.hook_run_on(&context.node.name, &attempt.member, attempt.hook);
    let workload = state.replicas.get(&context.node.name).and_then(|replica| replica.workload(name));
    let dials_in = workload.filter(|workload| workload.dials_in());
    // What it was when it was taken away is run by this replica.
    if dials_in.is_some_and(|workload| id.is_none_or(|id| workload.hook(id).is_some())) {
        return Some(HookCall::Session(Dispatch { is_inherited, deadline: attempt.deadline }));
    }
    let id = id?;
    let calls = configured.get(&(name.clone(), id)).cloned().or_else(|| former.calls(name, id))?;
    let command = match attempt.intent {
        Intent::Run => Some(calls.run),
        Intent::Confirm => calls.confirm,
        Intent::Undo => calls.undo,
    };
    command.map(HookCall::Command)
}
