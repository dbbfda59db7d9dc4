//! Hooks that are commands.
//!
//! Each attempt is run by a supervisor, a small process that outlives the replica. The supervisor holds the lock of the
//! attempt's folder until its own end, writes the outcome there, and announces the outcome on its standard output. So a
//! restarted replica finds a running hook, an outcome, or an attempt with an unknown outcome. The replica never starts
//! an attempt twice.
//!
//! ```text
//! <spool>/.lock             held by the one runner of this spool
//! <spool>/.new              attempts started here before this spool existed are still unknown
//! <spool>/<attempt>/        lock · request.json · mark.json · progress.json · cancel.json · outcome.json
//!                           stdout · stderr · supervisor (its own errors)
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
mod verdict;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use first_use::Memory;
pub use question::Question;
pub use runner::{FORMER_HOOKS, Runner};
pub use single_run::{RunResult, run_alone, told};
pub use spool_dir::SpoolOpenError;
pub use supervisor::supervise;
pub use user::as_own_user;

/// A program and its arguments, never a shell command line.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HookCommand {
    pub argv: Vec<String>,
    /// The hook's own variables, which may replace `PATH`, `HOME` and `LANG`, never the facts.
    #[serde(rename = "own_env")]
    pub env: BTreeMap<String, String>,
    /// Variables with values that may be shown. All other values are removed from the hook's output.
    #[serde(default)]
    pub shown: BTreeSet<String>,
    /// Further variables, with values from files that are read at each attempt. These values are never shown.
    #[serde(default)]
    pub env_files: BTreeMap<String, PathBuf>,
    /// The user of the hook, when the replica is root.
    pub user: Option<String>,
}

impl fmt::Debug for HookCommand {
    /// Omits the values of the variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: BTreeSet<_> = self.env.keys().chain(self.env_files.keys()).collect();
        f.debug_struct("Command")
            .field("argv", &self.argv)
            .field("variables", &variables)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The part of the replica's own environment for hooks: these three variables, with the user's `HOME` for a hook with a
/// `user`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookEnvironment {
    pub path: String,
    pub home: String,
    pub lang: String,
    /// For the supervisor only, whose memory is readable by hooks of its user: a library preloaded into the replica,
    /// such as another clock, is preloaded there as well.
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
