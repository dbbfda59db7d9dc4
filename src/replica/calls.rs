//! The way to each hook of this VM: the workload itself where it has dialled in, else the command of the configuration.

use std::collections::BTreeMap;

use super::here::Here;
use crate::machine::attempt::Attempt;
use crate::machine::id::WorkloadName;
use crate::machine::workload::{HookId, Intent, Origin};
use crate::workloads::session::Terms;
use crate::workloads::{self, Call};

/// How a configured hook is reached on this VM, by intent.
#[derive(Clone, Debug)]
pub struct Calls {
    pub run: workloads::Command,
    pub confirm: Option<workloads::Command>,
    pub undo: Option<workloads::Command>,
}

/// The hooks of the workloads in this VM's configuration.
pub type Configured = BTreeMap<(WorkloadName, HookId), Calls>;

pub(super) fn call(configured: &Configured, here: &Here, attempt: &Attempt, is_inherited: bool) -> Option<Call> {
    let (state, name) = (here.state(), &attempt.member.workload);
    let workload = state.replicas.get(&here.name).and_then(|replica| replica.workload(name));
    if workload.is_some_and(|workload| workload.origin == Origin::Dialled) {
        return Some(Call::Session(Terms { is_inherited, deadline: attempt.deadline }));
    }
    let calls = configured.get(&(name.clone(), attempt.hook))?;
    let command = match attempt.intent {
        Intent::Run => Some(&calls.run),
        Intent::Confirm => calls.confirm.as_ref(),
        Intent::Undo => calls.undo.as_ref(),
    };
    command.cloned().map(Call::Command)
}
