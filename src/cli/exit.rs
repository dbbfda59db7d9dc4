//! What the exit status says; scripts rely on it.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// No replica answers.
    NoReplica = 3,
    /// A replica answered no, and why.
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
