//! Requests of operators, and their records in the state.

use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, EventId};
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// The longest hold or pause: a forgotten hold or pause should be noticed before the next disaster.
pub const HOLD_AT_MOST: Duration = Duration::from_hours(30 * 24);

/// The number of records kept per event, and of records about no single event: the latest, and every record in force.
pub const OPERATOR_RECORD_LIMIT: usize = 100;

/// A request of an operator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OperatorRequest {
    /// The event must not be approved before this time.
    Hold {
        event: EventId,
        until: Timestamp,
        /// No hook is started either, not even in last call.
        no_hooks: bool,
    },
    Release {
        event: EventId,
    },
    /// No event may be approved before this time.
    Pause {
        until: Timestamp,
    },
    Resume,
    /// The event, as seen at this revision, is to be approved without the rest of its preparation.
    Approve {
        event: EventId,
        revision: u64,
        /// Regardless of other members of the event's groups that are out.
        over_budget: bool,
    },
    /// The member is in service, regardless of the outcome of its restore.
    Restored {
        member: Member,
    },
    /// This hook is not waited for.
    Skip {
        event: EventId,
        member: Member,
        hook: HookId,
    },
    /// The preparation of the event is to start at this time, ahead of its usual start.
    Prepare {
        event: EventId,
        from: Timestamp,
    },
    /// This hook failed, its cause is mended, and the hook is to run again.
    Retry {
        event: EventId,
        member: Member,
        hook: HookId,
    },
    /// A request about members or leadership: carried out elsewhere, and recorded in the log.
    ClusterChange {
        what: String,
    },
}

impl OperatorRequest {
    /// For logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Release { .. } => "release",
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Approve { .. } => "approve",
            Self::Restored { .. } => "restored",
            Self::Skip { .. } => "skip",
            Self::Prepare { .. } => "prepare",
            Self::Retry { .. } => "retry",
            Self::ClusterChange { .. } => "cluster_change",
        }
    }
}

/// An accepted request of an operator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OperatorRecord {
    /// Counts the requests of a cluster, so that a replica can report the number of known requests.
    pub number: u64,
    pub at: Timestamp,
    pub who: String,
    pub reason: String,
    pub what: OperatorAction,
}

/// A request as stored: with its event, or beside all events. A skipped hook is a waiver.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OperatorAction {
    Hold {
        until: Timestamp,
        no_hooks: bool,
    },
    Release,
    Approve {
        revision: u64,
        over_budget: bool,
    },
    Prepare {
        from: Timestamp,
        /// The event's revision at the request.
        revision: u64,
    },
    /// The attempts of this hook up to and including `after` no longer count.
    Retry {
        member: Member,
        hook: HookId,
        after: AttemptId,
    },
    Restored(Member),
    Pause {
        until: Timestamp,
    },
    Resume,
    ClusterChange(String),
}

/// A hold or a pause in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suspension {
    pub number: u64,
    pub by: String,
    pub until: Timestamp,
    pub reason: String,
    /// Hooks are held, too.
    pub no_hooks: bool,
}

impl fmt::Display for Suspension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}: {}", self.by, self.reason)
    }
}

impl OperatorRecord {
    pub(crate) const fn holds_or_releases(&self) -> bool {
        matches!(self.what, OperatorAction::Hold { .. } | OperatorAction::Release)
    }

    pub(crate) const fn holds_or_approves(&self) -> bool {
        matches!(self.what, OperatorAction::Hold { .. } | OperatorAction::Approve { .. })
    }

    pub(crate) const fn holds_or_prepares(&self) -> bool {
        matches!(self.what, OperatorAction::Hold { .. } | OperatorAction::Prepare { .. })
    }

    pub(crate) const fn pauses_or_resumes(&self) -> bool {
        matches!(self.what, OperatorAction::Pause { .. } | OperatorAction::Resume)
    }

    pub(crate) fn suspension_of(&self, now: Timestamp) -> Option<Suspension> {
        let (until, no_hooks) = match self.what {
            OperatorAction::Hold { until, no_hooks } => (until, no_hooks),
            OperatorAction::Pause { until } => (until, false),
            OperatorAction::Release
            | OperatorAction::Approve { .. }
            | OperatorAction::Resume
            | OperatorAction::Restored(_)
            | OperatorAction::Prepare { .. }
            | OperatorAction::Retry { .. }
            | OperatorAction::ClusterChange(_) => return None,
        };
        let Self { number, who: by, reason, .. } = self.clone();
        (now < until).then_some(Suspension { number, by, until, reason, no_hooks })
    }
}
