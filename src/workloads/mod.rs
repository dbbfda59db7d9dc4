//! Running hooks: what a hook is told, how it is run, and how its outcome comes back.
//!
//! An attempt is known by its id. It is begun at most once, also over restarts of the replica, and its outcome is kept
//! until the replica says that it is committed. What to run and when is not decided here.
//! For owners of a workload: `README.md` beside this file.

pub mod command;
mod contract;

pub use command::{Command, OpenError, Runner, Surroundings, supervise};
pub use contract::{Ended, Fence, News, Report, Standing, Task};
