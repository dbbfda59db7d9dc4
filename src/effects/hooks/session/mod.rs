//! Hooks of session workloads: the connected workloads and their attempts.
//!
//! A run of the replica sends an attempt at most once. An attempt possibly sent by a previous run is only adopted: the
//! workload reports the attempt, or the outcome is unknown. An outcome is kept until the log has the outcome; only then
//! the workload stops repeating the report.

mod attempt;
mod given;
mod heard;
mod seat;
mod sessions;
#[cfg(test)]
mod test_bench;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Deadline, HookOutcome, HookTask};
use crate::secrets::Secrets;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::state::WORKLOAD_LIMIT;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Role, Workload};

pub use heard::Reservation;
pub use sessions::Sessions;

/// The maximum of attempts that one workload may report as known.
pub const MAX_KNOWN: usize = 256;
/// The maximum of unread messages of a workload; beyond the maximum the workload is disconnected.
pub const MAX_UNREAD: usize = 256;

/// A connecting workload, with its own description.
#[derive(Clone, Debug)]
pub struct Hello {
    pub workload: Workload,
    /// Different at every start of the workload's process.
    pub boot: String,
    pub lease: Duration,
    /// How long the registration is kept without a session; `None`: until deregistered.
    pub retain: Option<Duration>,
    pub role: Role,
    /// The attempts known to the workload; `None` for a running attempt.
    pub known: BTreeMap<String, Option<HookOutcome>>,
    /// The workload polls for messages, and holds no stream open.
    pub polls: bool,
}

/// Names one session; the token of another session cannot be guessed from this one. Must not be printed, because the
/// token is secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionToken {
    pub workload: WorkloadName,
    token: String,
}

impl SessionToken {
    /// The text of the token, sent by the workload with each request.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.token, self.workload)
    }

    pub fn parse(shown: &str) -> Option<Self> {
        let (token, workload) = shown.split_once('.')?;
        Some(Self { workload: WorkloadName(workload.to_owned()), token: token.to_owned() })
    }
}

/// A message to a workload.
#[derive(Clone, Debug)]
pub enum ToWorkload {
    Step(Box<HookTask>),
    Cancel {
        attempt: String,
        reason: String,
    },
    /// The deadline of the attempt, repeated or new.
    Deadline {
        attempt: String,
        deadline: Deadline,
    },
    /// The log has the outcome of this attempt.
    Acknowledged(String),
    /// The session is over.
    GoAway(String),
}

/// A message of a workload about an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromWorkload {
    Progress { text: String, expected_end_in: Option<Duration> },
    MoreTime(Duration),
    Ended(HookOutcome),
}

impl FromWorkload {
    /// Removes the secrets given to the workload from its texts.
    fn without(self, secrets: &Secrets) -> Self {
        match self {
            Self::Progress { text, expected_end_in } => Self::Progress { text: secrets.cut(&text), expected_end_in },
            Self::MoreTime(needs) => Self::MoreTime(needs),
            Self::Ended(ended) => Self::Ended(ended.reworded(|reason| secrets.cut(reason))),
        }
    }
}

/// The reason and the deadline for an attempt sent to a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// A previous run of this replica may have sent the attempt.
    pub is_left_over: bool,
    /// The deadline as the log has it, to detect a change.
    pub deadline: Timestamp,
}

/// The state of one registered workload at this replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRegistration {
    pub workload: Workload,
    pub role: Role,
    pub connected: bool,
    /// The workload has connected to this run of the replica.
    pub has_dialled: bool,
    /// The workload has been disconnected for longer than its registration is to be kept.
    pub is_due_to_go: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegistrationError {
    #[error(
        "another session has the name {0}; stop that session, wait for the end of its lease if it is an earlier run of \
         this workload, or give this workload another name"
    )]
    Taken(WorkloadName),
    #[error(
        "{WORKLOAD_LIMIT} workloads are registered at this replica, which is the limit; unregister workloads that no \
         longer run"
    )]
    Full,
}

/// The session is over, or never existed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this session is over; register again")]
pub struct SessionClosed;
