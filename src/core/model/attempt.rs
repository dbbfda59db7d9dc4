//! One run of one hook, the outcome of a run, and the waiver of a hook.

use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, VmName};
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member};
use alloc::string::String;
use core::time::Duration;

/// A hook has ended this long after the deadline: the hook has 5 s between SIGTERM and SIGKILL, and the outcome has 1 s
/// to arrive here.
pub const ENDED_WITHIN: Duration = Duration::from_secs(6);

/// One run of one hook.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attempt {
    pub id: AttemptId,
    pub member: Member,
    pub hook: HookId,
    pub intent: Intent,
    /// The stint of the member's slot in which the attempt began; 0 for a hook that neither takes service away nor
    /// restores service.
    pub stint: u64,
    /// The replica that runs the attempt.
    pub on: VmName,
    pub begun_at: Timestamp,
    pub deadline: Timestamp,
    pub progress: Option<Progress>,
    /// The earlier answers "blocked" of this attempt; `None` when there was none.
    pub blocked: Option<BlockedCount>,
    /// `None` while the attempt runs.
    pub outcome: Option<(Outcome, Timestamp)>,
    /// An outcome that arrived after the attempt was settled. A late outcome does not count.
    pub late: Option<(Outcome, Timestamp)>,
}

impl Attempt {
    /// The last answer of the hook was "blocked".
    pub const fn is_blocked(&self) -> bool {
        matches!(self.outcome, Some((Outcome::Blocked(_), _)))
    }

    /// Time since which every answer of the hook was "blocked", also while the hook is asked again.
    pub fn blocked_since(&self) -> Option<Timestamp> {
        self.blocked.filter(|_| self.outcome.is_none() || self.is_blocked()).map(|blocked| blocked.since)
    }
}

/// A blocked hook is asked again every few seconds. All these runs are one attempt, with the id of the last run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockedCount {
    /// The number of consecutive answers "blocked".
    pub times: u32,
    /// When the first of these runs began.
    pub since: Timestamp,
}

/// The progress that a running hook reported.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Progress {
    pub text: String,
    pub expected_end: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    Done,
    NotApplicable,
    /// The answer of `confirm`: the hook is not done.
    NotDone,
    Failed(String),
    /// Try again later.
    Blocked(String),
    TimedOut(String),
    Cancelled,
    /// The outcome cannot be determined; settled by asking, never by running again.
    Unknown(String),
}

variant_names!(Outcome, as_str, NAMES {
    Self::Done => "done",
    Self::NotApplicable => "not_applicable",
    Self::NotDone => "not_done",
    Self::Failed(_) => "failed",
    Self::Blocked(_) => "blocked",
    Self::TimedOut(_) => "timed_out",
    Self::Cancelled => "cancelled",
    Self::Unknown(_) => "unknown",
});

impl Outcome {
    /// The hook is done, or was not needed.
    pub const fn is_favourable(&self) -> bool {
        matches!(self, Self::Done | Self::NotApplicable)
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) | Self::Blocked(reason) | Self::TimedOut(reason) | Self::Unknown(reason) => {
                Some(reason)
            }
            Self::Done | Self::NotApplicable | Self::NotDone | Self::Cancelled => None,
        }
    }
}

/// A hook of a workload that is no longer waited for, by a committed reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waiver {
    pub member: Member,
    pub hook: HookId,
    pub why: WaiverReason,
    pub at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WaiverReason {
    /// The only replica that could run the hook is unreachable, and a user asked for the event because of this.
    Unreachable,
    /// An operator skipped the hook.
    Skipped { who: String, reason: String },
}

impl WaiverReason {
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Skipped { .. } => "skipped",
        }
    }
}
