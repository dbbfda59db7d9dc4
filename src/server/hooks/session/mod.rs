//! Hooks of session workloads: the connected workloads and their attempts.
//!
//! A run of the replica sends an attempt at most once. An attempt that a previous run may have sent is only adopted:
//! the workload reports it, or its outcome is unknown. An outcome is kept until the log has it; only then the workload
//! stops repeating it.

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

/// Attempts that one workload may say it knows.
pub const MAX_KNOWN: usize = 256;
/// What a workload has not read yet; one that lets more pile up is disconnected.
pub const MAX_UNREAD: usize = 256;

/// A workload that dials in, with what it says of itself.
#[derive(Clone, Debug)]
pub struct Hello {
    pub workload: Workload,
    /// Another one with every start of its process.
    pub boot: String,
    pub lease: Duration,
    /// How long the registration is kept without a session; `None`: until it is taken back.
    pub retain: Option<Duration>,
    pub role: Role,
    /// The attempts that it knows; `None` while one runs.
    pub known: BTreeMap<String, Option<HookOutcome>>,
    /// It asks by itself, and holds no stream open.
    pub polls: bool,
}

/// Names one session: by what is known of it nobody else's can be guessed. Not to be printed, for its token is for
/// nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionToken {
    pub workload: WorkloadName,
    token: String,
}

impl SessionToken {
    /// For the workload to show when it asks.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.token, self.workload)
    }

    pub fn parse(shown: &str) -> Option<Self> {
        let (token, workload) = shown.split_once('.')?;
        Some(Self { workload: WorkloadName(workload.to_owned()), token: token.to_owned() })
    }
}

/// What a workload is told.
#[derive(Clone, Debug)]
pub enum ToWorkload {
    Step(Box<HookTask>),
    Cancel {
        attempt: String,
        reason: String,
    },
    /// When the attempt has to be done, again or anew.
    Deadline {
        attempt: String,
        deadline: Deadline,
    },
    /// The log has its outcome.
    Acknowledged(String),
    /// The session is over.
    GoAway(String),
}

/// What a workload says of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromWorkload {
    Progress { text: String, expected_end_in: Option<Duration> },
    MoreTime(Duration),
    Ended(HookOutcome),
}

impl FromWorkload {
    /// What was given to the workload in confidence is not passed on.
    fn without(self, secrets: &Secrets) -> Self {
        match self {
            Self::Progress { text, expected_end_in } => Self::Progress { text: secrets.cut(&text), expected_end_in },
            Self::MoreTime(needs) => Self::MoreTime(needs),
            Self::Ended(ended) => Self::Ended(ended.reworded(|reason| secrets.cut(reason))),
        }
    }
}

/// Why an attempt is given to a session, and until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// A former life of this replica may have sent it.
    pub is_left_over: bool,
    /// The deadline as the log has it, to tell a changed one.
    pub deadline: Timestamp,
}

/// One registered workload as this replica sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRegistration {
    pub workload: Workload,
    pub role: Role,
    pub connected: bool,
    /// It has dialled in at this life of the replica.
    pub has_dialled: bool,
    /// It has been away for longer than its registration is to be kept.
    pub is_due_to_go: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegistrationError {
    #[error("another session bears the name {0}; stop that one, or give this workload another name")]
    Taken(WorkloadName),
    #[error(
        "{WORKLOAD_LIMIT} workloads are registered at this replica, which is the limit; unregister those that are gone"
    )]
    Full,
}

/// The session is over, or never was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this session is over; register again")]
pub struct SessionClosed;
