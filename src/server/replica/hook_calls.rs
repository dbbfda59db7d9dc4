//! The way to each hook of this VM: the workload itself where it has dialled in, else the command of the configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::Context;
use super::former_hooks::Former;
use crate::hooks::session::Dispatch;
use crate::hooks::{self, HookCall};
use allclear_core::model::attempt::Attempt;
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::Intent;

/// How a configured hook is reached on this VM, by intent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookCalls {
    pub run: hooks::HookCommand,
    pub confirm: Option<hooks::HookCommand>,
    pub undo: Option<hooks::HookCommand>,
}

/// The hooks of the workloads in this VM's configuration.
pub type Configured = BTreeMap<(WorkloadName, HookId), HookCalls>;

pub(super) fn call(
    configured: &Configured,
    former: &Former,
    here: &Context,
    attempt: &Attempt,
    is_inherited: bool,
) -> Option<HookCall> {
    let (state, name) = (here.state(), &attempt.member.workload);
    let id = state.hook_run_on(&here.name, &attempt.member, attempt.hook);
    let workload = state.replicas.get(&here.name).and_then(|replica| replica.workload(name));
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
