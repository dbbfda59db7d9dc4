//! The hooks of the configuration, and the call of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hooks;
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::WorkloadName;

/// The commands of a configured hook on this VM, by intent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookCalls {
    pub run: hooks::HookCommand,
    pub confirm: Option<hooks::HookCommand>,
    pub undo: Option<hooks::HookCommand>,
}

/// The hooks of the workloads in this VM's configuration.
pub type Configured = BTreeMap<(WorkloadName, HookId), HookCalls>;
