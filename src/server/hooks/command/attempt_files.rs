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

/// What has a file of its own.
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

impl RecordFile for OutcomeRecord {
    const FILE: &'static str = "outcome.json";
}

/// Everything a supervisor needs.
#[derive(Serialize, Deserialize)]
pub(super) struct RunRecord {
    /// Where it is run, see `process::place`.
    pub(super) place: String,
    #[serde(flatten)]
    pub(super) command: HookCommand,
    /// The environment without the hook's own and the facts.
    pub(super) env: BTreeMap<String, String>,
    pub(super) facts: Map<String, Value>,
    /// By the clock that counts from the machine's start, which no jump of its wall clock moves.
    pub(super) ends_at: Duration,
}

/// Written before the hook is started. The supervisor leads the session that the hook lives in.
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

#[derive(Serialize, Deserialize)]
pub(super) struct OutcomeRecord {
    pub(super) ended: HookOutcome,
    /// For people, and replicas of an earlier version.
    pub(super) at_ms: i64,
    /// The last that the hook said of its progress; `None` where no supervisor wrote it, or one of an earlier
    /// version. A replica of an earlier version shows what was told before.
    #[serde(default)]
    pub(super) progress: Option<ProgressRecord>,
}
