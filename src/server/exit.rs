//! Exit statuses, and messages for people on standard error.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use tokio::runtime::Runtime;

use crate::replica::sanitize::sanitize;

/// The result of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// No replica answers.
    NoReplica = 3,
    /// A replica refused, with a reason.
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Prints a message for people without control characters. A closed standard error is ignored.
pub fn say(what: impl fmt::Display) {
    let what = what.to_string();
    let lines: Vec<_> = what.split('\n').map(sanitize).collect();
    let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
}

/// Prints the reason why a request is impossible as given.
pub fn misused(why: impl fmt::Display) -> Exit {
    say(why);
    Exit::Usage
}

pub fn failed(why: impl fmt::Display) -> Exit {
    say(why);
    Exit::Failed
}

/// From now on a panic in any thread or task ends the process, in every build. A replica without one of its tasks would
/// hold its lease and approve nothing; the service manager starts an ended replica again.
pub fn end_at_a_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::abort();
    }));
}

/// The runtime of asynchronous commands.
pub fn runtime() -> Result<Runtime, Exit> {
    Runtime::new().map_err(|error| failed(format_args!("cannot start: {error}")))
}
