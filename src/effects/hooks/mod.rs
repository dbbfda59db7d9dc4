//! Runs hooks.
//!
//! A hook is a command, or a step of a session workload; [`HookRunner`] runs both. An attempt has an id. An attempt
//! starts at most once, also over restarts of the replica, and its outcome is kept until the replica reports the
//! outcome as committed. The core decides which hooks run and when. `deploy/docs/hooks.md` is for owners of a
//! database.

mod close_fds;
pub mod command;
mod contract;
mod http;
mod probe;
mod role;
mod runner;
pub mod session;
mod text;

use std::sync::Arc;

pub use close_fds::close_descriptors;
pub use command::{HookCommand, HookEnvironment, Runner, SpoolOpenError, supervise};
pub use contract::{AttemptState, Deadline, Fence, HookOutcome, HookReport, HookTask, HookUpdate};
pub use http::{Adapter, HttpHook};
pub use probe::{Owner, ProbeHook};
pub use role::RoleSource;
pub use runner::{HookCall, HookRunner};
pub use text::one_line;

use allclear_core::model::time::Timestamp;

/// A machine's wall clock.
pub type Wall = Arc<dyn Fn() -> Timestamp + Send + Sync>;
