//! One run of one hook, its outcome, and the waiver of a hook that is no longer waited for.

use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, VmName};
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member};
use alloc::string::String;
use core::time::Duration;

/// A hook has ended this long after its deadline: it has 5 s between SIGTERM and SIGKILL, and its outcome a moment to
/// get here.
pub const ENDED_WITHIN: Duration = Duration::from_secs(6);

/// One run of one hook.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Attempt {
    pub id: AttemptId,
    pub member: Member,
    pub hook: HookId,
    pub intent: Intent,
    /// The stint of the member's slot in which it was begun; 0 where nothing is taken away, or put back.
    pub stint: u64,
    /// The replica that runs it.
    pub on: VmName,
    pub begun_at: Timestamp,
    pub deadline: Timestamp,
    pub progress: Option<Progress>,
    /// What it has answered before, when that was that it is blocked; `None` when it never did.
    pub blocked: Option<BlockedCount>,
    /// `None` while it runs.
    pub outcome: Option<(Outcome, Timestamp)>,
    /// An outcome that arrived after the attempt was settled without it. It does not count.
    pub late: Option<(Outcome, Timestamp)>,
}

impl Attempt {
    /// It has answered that it is blocked.
    pub const fn is_blocked(&self) -> bool {
        matches!(self.outcome, Some((Outcome::Blocked(_), _)))
    }

    /// Since when it has answered nothing but that it is blocked, also while it is asked once more.
    pub fn blocked_since(&self) -> Option<Timestamp> {
        self.blocked.filter(|_| self.outcome.is_none() || self.is_blocked()).map(|blocked| blocked.since)
    }
}

/// A hook that is blocked is asked again every few seconds. All of that is one attempt, under the number of the last run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockedCount {
    /// How often it has answered so, in a row.
    pub times: u32,
    /// When the first of these runs was begun.
    pub since: Timestamp,
}

/// What a running hook said of itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Progress {
    pub text: String,
    pub expected_end: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    Done,
    NotApplicable,
    /// The answer of `confirm` that it is not done.
    NotDone,
    Failed(String),
    /// Try again later.
    Blocked(String),
    TimedOut(String),
    Cancelled,
    /// Nobody can say; settled by asking, never by running again.
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

/// A hook of a workload that is not waited for any more, by a committed reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waiver {
    pub member: Member,
    pub hook: HookId,
    pub why: WaiverReason,
    pub at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum WaiverReason {
    /// The only replica that could run it does not answer, and somebody asked for the event for that reason.
    Unreachable,
    /// An operator said so.
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
