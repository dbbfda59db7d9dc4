//! What the exit status says; scripts rely on it.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Done,
    Failed,
    /// Wrong usage or configuration.
    Usage,
    /// No replica answers.
    NoReplica,
    /// A replica answered no, and why.
    Refused,
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoReplica => 3,
            Self::Refused => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
