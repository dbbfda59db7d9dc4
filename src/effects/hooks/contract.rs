//! The inputs and outcomes of a hook, for every way in which a hook runs (`SPEC.md` 14).

use core::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use allclear_core::model::document::{EventType, Source};
use allclear_core::model::drill::Mode;
use allclear_core::model::id::{EventId, GroupName, VmName, WorkloadName};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Intent, Phase};

/// One attempt, as the cluster assigned it to this replica.
#[derive(Clone, Debug)]
pub struct HookTask {
    /// The idempotency key: repeated requests with one key are done once.
    pub attempt: String,
    /// Equal for every attempt of this hook in this event.
    pub step: String,
    pub fence: Fence,
    pub event_id: EventId,
    pub event_type: EventType,
    pub event_source: Source,
    pub resources: Vec<VmName>,
    pub phase: Phase,
    /// The place of the hook among those of its phase, from 0.
    pub place: usize,
    pub workload: WorkloadName,
    pub group: Option<GroupName>,
    /// The affected VM.
    pub vm: VmName,
    pub intent: Intent,
    pub deadline: Deadline,
    pub avoid: Vec<VmName>,
    pub prefer: Vec<VmName>,
    pub traceparent: Option<String>,
    /// `None`: the event is real.
    pub drill: Option<Mode>,
}

/// The end of the time for an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// On the monotonic clock, which alone counts: a wall clock may jump.
    pub at: Instant,
    /// The deadline on this machine's wall clock, only shown.
    pub on_the_wall: Timestamp,
}

impl Deadline {
    /// The deadline after `span` from now; `wall` is the current time of the wall clock.
    pub fn within(span: Duration, wall: Timestamp) -> Self {
        Self { at: Instant::now() + span, on_the_wall: wall.plus(span) }
    }

    /// Zero after the deadline.
    pub fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// Grows with every started attempt: a receiver of a higher fence may refuse a lower fence. Terms are compared first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fence {
    pub term: u64,
    /// The number of the attempt.
    pub sequence: u64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.term, self.sequence)
    }
}

/// The defined exit statuses of a command hook; any other is `FAILED`.
pub(super) mod exit {
    pub(in crate::hooks) const DONE: u8 = 0;
    pub(in crate::hooks) const FAILED: u8 = 1;
    pub(in crate::hooks) const NOT_APPLICABLE: u8 = 11;
    pub(in crate::hooks) const NOT_DONE: u8 = 12;
    pub(in crate::hooks) const UNKNOWN: u8 = 13;
    pub(in crate::hooks) const BLOCKED: u8 = 75;
    /// A program of the hook was killed by SIGKILL, as shells report it.
    pub(in crate::hooks) const KILLED: u8 = 128 + 9;
    /// A program of the hook was stopped by SIGTERM, as shells report it.
    pub(in crate::hooks) const TERMINATED: u8 = 128 + 15;
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum HookOutcome {
    Done,
    NotApplicable,
    /// An answer to `confirm`.
    NotDone,
    Failed(String),
    /// Nothing is wrong with the hook; try again later.
    Blocked(String),
    TimedOut,
    Cancelled,
    /// The hook may have had its effect or not; only a `confirm` by the hook can tell.
    Unknown(String),
    /// As `Unknown`, but not reported by the hook: the process that ran the hook is gone.
    Lost(String),
}

impl HookOutcome {
    /// The hook is done, or was not needed.
    pub(super) const fn is_favourable(&self) -> bool {
        matches!(self, Self::Done | Self::NotApplicable)
    }

    /// Rewrites the reason of the outcome with `reword`.
    #[must_use]
    pub(super) fn reworded(self, reword: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Failed(reason) => Self::Failed(reword(&reason)),
            Self::Blocked(reason) => Self::Blocked(reword(&reason)),
            Self::Unknown(reason) => Self::Unknown(reword(&reason)),
            Self::Lost(reason) => Self::Lost(reword(&reason)),
            Self::Done | Self::NotApplicable | Self::NotDone | Self::TimedOut | Self::Cancelled => self,
        }
    }
}

impl fmt::Display for HookOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::NotApplicable => f.write_str("not applicable"),
            Self::NotDone => f.write_str("not done"),
            Self::Failed(reason) => write!(f, "failed: {reason}"),
            Self::Blocked(reason) => write!(f, "blocked: {reason}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Unknown(reason) => write!(f, "unknown: {reason}"),
            Self::Lost(reason) => write!(f, "lost: {reason}"),
        }
    }
}

/// The known state of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttemptState {
    Running,
    Ended(HookOutcome),
}

/// An update of an attempt. `HookOutcome` is repeated when the attempt is requested again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookReport {
    pub attempt: String,
    pub news: HookUpdate,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HookUpdate {
    Progress {
        text: Option<String>,
        expected_end: Option<Timestamp>,
    },
    /// The hook asks for this much time from now on.
    MoreTime {
        needs: Duration,
    },
    Ended(HookOutcome),
}

/// The facts of a task by name, written once: the variables are the names in upper case, and the JSON has the names
/// unchanged.
pub(super) fn facts(task: &HookTask) -> Map<String, Value> {
    [
        ("event_id", json!(task.event_id.as_str())),
        ("event_type", json!(task.event_type.as_str())),
        ("event_source", json!(task.event_source.as_str())),
        ("event_resources", json!(names(&task.resources))),
        ("phase", json!(task.phase.as_str())),
        ("workload", json!(task.workload.0)),
        ("group", json!(task.group.as_ref().map(|group| &group.0))),
        ("vm", json!(task.vm.as_str())),
        ("attempt", json!(task.attempt)),
        ("step", json!(task.step)),
        ("fence", json!(task.fence.to_string())),
        ("intent", json!(task.intent.as_str())),
        ("deadline", json!(rfc3339(task.deadline.on_the_wall))),
        ("avoid_vms", json!(names(&task.avoid))),
        ("prefer_vms", json!(names(&task.prefer))),
        ("traceparent", json!(task.traceparent)),
        ("mode", json!(task.drill.map_or("live", Mode::as_str))),
    ]
    .into_iter()
    .map(|(name, fact)| (name.to_owned(), fact))
    .collect()
}

fn names(vms: &[VmName]) -> Vec<&str> {
    vms.iter().map(VmName::as_str).collect()
}

/// Added last: where wall clocks differ, only the time left counts.
pub(super) fn with_time_left(mut facts: Map<String, Value>, left: Duration) -> Map<String, Value> {
    facts.insert("time_left_ms".to_owned(), json!(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)));
    facts
}

/// The facts as variables. Lists are separated by spaces; a missing fact is empty, so a script may run under `set -u`.
/// A variable cannot hold a zero byte.
pub(super) fn variables(facts: &Map<String, Value>) -> impl Iterator<Item = (String, String)> {
    facts
        .iter()
        .map(|(name, fact)| (format!("ALLCLEAR_{}", name.to_ascii_uppercase()), as_text(fact).replace('\0', "")))
}

fn as_text(fact: &Value) -> String {
    match fact {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(as_text).collect::<Vec<_>>().join(" "),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => fact.to_string(),
    }
}

pub(super) fn rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0).unwrap_or(jiff::Timestamp::MAX).to_string()
}
