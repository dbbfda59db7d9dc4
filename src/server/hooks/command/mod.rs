//! Hooks that are commands.
//!
//! Each attempt is run by a supervisor, a small process of its own that outlives the replica. It holds the lock of the
//! attempt's folder while it lives, leaves the outcome there, and says so over its standard output. So a replica that
//! comes back finds a hook that still runs, or its outcome, or knows that nobody can tell; it never starts the same
//! attempt again.
//!
//! ```text
//! <spool>/.lock             held by the one runner of this spool
//! <spool>/.new              nobody knows yet what was begun here before there was this spool
//! <spool>/<attempt>/        lock · request.json · mark.json · progress.json · outcome.json
//!                           stdout · stderr · supervisor (what it says of itself)
//! ```

mod attempt;
mod attempt_files;
pub(super) mod clock;
mod environment;
mod first_use;
mod name;
mod output;
mod process;
mod question;
mod runner;
mod running_attempts;
mod single_run;
mod spool;
mod spool_dir;
mod start;
mod supervisor;
mod user;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use first_use::Memory;
pub use question::Question;
pub use runner::Runner;
pub use single_run::{RunResult, run_alone, told};
pub use spool_dir::SpoolOpenError;
pub use supervisor::supervise;

/// What is run: a program and its arguments, never a line for a shell.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HookCommand {
    pub argv: Vec<String>,
    /// The hook's own variables. They may replace `PATH`, `HOME` and `LANG`, never the facts.
    #[serde(rename = "own_env")]
    pub env: BTreeMap<String, String>,
    /// Of these variables the values may be shown. All others are cut out of whatever the hook says.
    #[serde(default)]
    pub shown: BTreeSet<String>,
    /// Further variables, whose values stand in files that are read at each attempt. They are never shown.
    #[serde(default)]
    pub env_files: BTreeMap<String, PathBuf>,
    /// Whom to run as, when the replica is root.
    pub user: Option<String>,
}

impl fmt::Debug for HookCommand {
    /// Without the values of its variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: BTreeSet<_> = self.env.keys().chain(self.env_files.keys()).collect();
        f.debug_struct("Command")
            .field("argv", &self.argv)
            .field("variables", &variables)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// What is seen of the replica's own environment: by a hook these three, where it has a `user` with that user's `HOME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookEnvironment {
    pub path: String,
    pub home: String,
    pub lang: String,
    /// By its supervisor alone, into which hooks of its user can look: what is loaded into the replica, such as another
    /// clock, is loaded there as well.
    pub loaded: BTreeMap<String, String>,
}

impl Default for HookEnvironment {
    fn default() -> Self {
        Self {
            path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            home: "/".to_owned(),
            lang: "C.UTF-8".to_owned(),
            loaded: BTreeMap::new(),
        }
    }
}
