//! The files of an attempt's folder. Fields are only added, because a replica and its supervisors may run different
//! versions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::HookCommand;
use super::process::ProcessId;
use crate::hooks::HookOutcome;

/// A record with a file of its own.
pub(super) trait RecordFile: Serialize + DeserializeOwned {
    const FILE: &'static str;
}

impl RecordFile for RunRecord {
    const FILE: &'static str = "request.json";
}

impl RecordFile for StartRecord {
    const FILE: &'static str = "mark.json";
}

impl RecordFile for ProgressRecord {
    const FILE: &'static str = "progress.json";
}

impl RecordFile for CancelRecord {
    const FILE: &'static str = "cancel.json";
}

impl RecordFile for OutcomeRecord {
    const FILE: &'static str = "outcome.json";
}

/// The complete input of a supervisor.
#[derive(Serialize, Deserialize)]
pub(super) struct RunRecord {
    /// The place of the run, see `process::place`.
    pub(super) place: String,
    #[serde(flatten)]
    pub(super) command: HookCommand,
    /// The environment without the hook's own and the facts.
    pub(super) env: BTreeMap<String, String>,
    pub(super) facts: Map<String, Value>,
    /// By the monotonic clock since boot, unaffected by jumps of the wall clock.
    pub(super) ends_at: Duration,
}

/// Written before the hook is started. The supervisor leads the hook's session.
#[derive(Serialize, Deserialize)]
pub(super) struct StartRecord {
    pub(super) place: String,
    pub(super) supervisor: ProcessId,
}

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct ProgressRecord {
    pub(super) text: Option<String>,
    pub(super) expected_end_ms: Option<i64>,
}

/// Written by the replica before its SIGTERM to the supervisor. SIGTERM without this record is from another sender,
/// such as the shutdown of the VM, and leaves the outcome of the hook unknown.
#[derive(Serialize, Deserialize)]
pub(super) struct CancelRecord {
    /// For people.
    pub(super) at_ms: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OutcomeRecord {
    pub(super) ended: HookOutcome,
    /// For people, and replicas of an earlier version.
    pub(super) at_ms: i64,
    /// The last progress from the hook; `None` without a supervisor, or with a supervisor of an earlier version. A
    /// replica of an earlier version shows the progress reported before.
    #[serde(default)]
    pub(super) progress: Option<ProgressRecord>,
}
