//! Hooks that are commands.
//!
//! Each attempt is run by a supervisor, a small process of its own that outlives the replica. It holds the lock of the
//! attempt's folder while it lives and leaves the outcome there. So a replica that comes back finds a hook that still
//! runs, or its outcome, or knows that nobody can tell; it never starts the same attempt again.
//!
//! ```text
//! <spool>/.lock             held by the one runner of this spool
//! <spool>/.new              nobody knows yet what was begun here before there was this spool
//! <spool>/.aside/           folders that could not be made sense of, for people to look at
//! <spool>/<attempt>/        lock · request.json · mark.json · progress.json · outcome.json
//!                           stdout · stderr · supervisor (what it says of itself)
//! ```

mod aside;
mod attempt;
pub(super) mod clock;
mod disk;
mod memory;
mod name;
mod output;
mod process;
mod question;
mod removal;
mod runner;
mod spool;
mod supervisor;
mod user;

use std::collections::BTreeMap;

pub use question::ask;
pub use runner::{OpenError, Runner};
pub use supervisor::supervise;

/// What is run: a program and its arguments, never a line for a shell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Command {
    pub argv: Vec<String>,
    /// The hook's own variables. They may replace `PATH`, `HOME` and `LANG`, never the facts.
    pub env: BTreeMap<String, String>,
    /// Whom to run as, when the replica is root.
    pub user: Option<String>,
}

/// What a hook sees of the replica's own environment. With a `user`, `HOME` is that user's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Surroundings {
    pub path: String,
    pub home: String,
    pub lang: String,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            home: "/".to_owned(),
            lang: "C.UTF-8".to_owned(),
        }
    }
}
