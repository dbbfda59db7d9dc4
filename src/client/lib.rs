//! The client library of session workloads: connects a database to the replica on its VM, registers hooks, and runs
//! the hooks when the replica demands.
//!
//! ```no_run
//! use allclear_client::{Hook, Outcome, Phase, Role, Step, Workload};
//!
//! # async fn flush() -> std::io::Result<()> { Ok(()) }
//! # async fn switch_to(_: &str) -> std::io::Result<()> { Ok(()) }
//! # async fn is_primary() -> bool { true }
//! async fn fail_over(step: Step) -> Outcome {
//!     let Some(next) = step.prefer.first() else { return Outcome::Blocked("no standby to move to".into()) };
//!     step.progress(&format!("switching to {next}"));
//!     switch_to(next).await.into()
//! }
//!
//! async fn is_over(_: Step) -> Outcome {
//!     if is_primary().await { Outcome::NotDone } else { Outcome::Done }
//! }
//!
//! # async fn example() -> Result<(), allclear_client::StartError> {
//! let workload = Workload::new("orders", "/run/allclear/workloads.sock")
//!     .group("orders")
//!     .journal("/var/lib/orders/allclear.journal")
//!     .hook(Hook::new(Phase::Checkpoint, |_| flush()))
//!     .hook(Hook::new(Phase::Failover, fail_over).confirm(is_over))
//!     .start()?;
//! workload.set_role(Role::Primary);
//! # Ok(()) }
//! ```
//!
//! - An attempt that is received twice runs once. Attempts at one step run one after the other, and a completed step
//!   is not run again.
//! - An outcome is sent until the replica has the outcome in its log, also after a lost connection and, with a journal
//!   on disk, after a restart of this process.
//! - Attempts that a previous run of this process had begun and not ended are left to `confirm`.
//! - A handler that panics, or does not end within 4 s of being cancelled, has an unknown outcome.

mod backoff;
mod execute;
mod hook;
mod journal;
mod journal_file;
mod outcome;
mod session;
mod session_end;
mod step;
mod talk;
mod tracker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use allclear_wire::pb::allclear::workload::v1::{
    Event, Intent, Mode, OnAbsent, OnFailure, Peer, Phase, Role, RunsOn,
};
pub use hook::{HandlerFuture, Hook, with};
pub use journal_file::JournalError;
pub use outcome::Outcome;
pub use step::Step;

use allclear_wire::pb::allclear::workload::v1;
use journal::Journal;
use journal_file::JournalFile;
use session::Dialler;
use tracker::AttemptTracker;

/// Why a workload cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("hook {0}: name its phase")]
    NoPhase(usize),
    #[error("hook {0}: what is to stay fresh has to be looked at again: give it a `confirm`, or no `fresh_for`")]
    NotConfirmed(usize),
    #[error("start it inside a tokio runtime")]
    NoRuntime,
}

impl From<StartError> for std::io::Error {
    fn from(error: StartError) -> Self {
        Self::other(error)
    }
}

/// Whether there is a session with the replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// Not connected; the library retries the connection.
    Dialling {
        why: String,
    },
    /// The replica does not understand the registration, or this user may not register. The library retries
    /// regardless, for either cause may change.
    Refused {
        why: String,
    },
    /// Connected to the replica on this VM; `problems` are the replica's warnings about the registration, each after its
    /// place.
    Connected {
        vm: String,
        problems: Vec<String>,
    },
    Stopped,
}

/// `leave` removed no registration. The text has the reason. If there is a registration, of this run or of an earlier
/// run, events still wait for this workload.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StillRegistered(String);

/// A workload before the start.
pub struct Workload {
    socket: PathBuf,
    hello: v1::Hello,
    hooks: Vec<Hook>,
    role: Role,
    journal: Option<PathBuf>,
}

impl Workload {
    /// `name` is unique on its VM; `socket` is the replica's socket for workloads.
    pub fn new(name: &str, socket: impl Into<PathBuf>) -> Self {
        let hello =
            v1::Hello { versions: vec![1], workload: name.into(), boot: backoff::boot(), ..v1::Hello::default() };
        Self { socket: socket.into(), hello, hooks: Vec::new(), role: Role::Unspecified, journal: None }
    }

    /// The group: workloads that are replicas of each other. Without a group the members are not limited, and a failover
    /// gets no members: `ConnectionState::Connected` has a warning if the replica's configuration has groups.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.hello.group = Some(group.into());
        self
    }

    /// The time for which the workload counts as connected after its last message; 10 s by default. Heartbeats are
    /// sent every third of the lease.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.hello.lease_ms = Some(step::millis(lease));
        self
    }

    /// The time for which the registration is kept without a session; by default until `leave`.
    #[must_use]
    pub fn retain(mut self, retain: Duration) -> Self {
        self.hello.retain_ms = Some(step::millis(retain));
        self
    }

    /// The treatment of the hooks while the workload is disconnected.
    #[must_use]
    pub fn on_absent(mut self, on_absent: OnAbsent) -> Self {
        self.hello.on_absent = on_absent.into();
        self
    }

    /// A workload, on any VM, that is prepared before this workload.
    #[must_use]
    pub fn after(mut self, workload: &str) -> Self {
        self.hello.after.push(workload.into());
        self
    }

    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// The file in which attempts and their outcomes are persisted; by default memory alone. Each workload needs a
    /// file of its own.
    #[must_use]
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// Adds a hook. Hooks of one phase run in the order of these calls.
    #[must_use]
    pub fn hook(self, hook: Hook) -> Self {
        self.hooks([hook])
    }

    #[must_use]
    pub fn hooks(mut self, hooks: impl IntoIterator<Item = Hook>) -> Self {
        self.hooks.extend(hooks);
        self
    }

    /// Reads the journal and begins to connect, in the background, until the handle is dropped or stopped.
    pub fn start(self) -> Result<Handle, StartError> {
        for (at, hook) in self.hooks.iter().enumerate() {
            if hook.told.phase() == Phase::Unspecified {
                return Err(StartError::NoPhase(at));
            }
            if hook.told.fresh_for_ms.is_some() && hook.confirm.is_none() {
                return Err(StartError::NotConfirmed(at));
            }
        }
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let (lines, journal) = match &self.journal {
            Some(path) => JournalFile::open(path)?,
            None => (JournalFile::default(), Journal::default()),
        };
        let (stop, unregister) = (CancellationToken::new(), CancellationToken::new());
        let connection = watch::Sender::new(ConnectionState::Dialling { why: "not dialled yet".into() });
        let role = watch::Sender::new(self.role);
        let hooks = self.hooks.iter().map(|hook| hook.told.clone()).collect();
        let dialler = Dialler {
            socket: self.socket,
            hello: v1::Hello { hooks, ..self.hello },
            hooks: self.hooks.into(),
            desk: Arc::new(AttemptTracker::new(lines, journal)),
            role: role.subscribe(),
            connection: connection.clone(),
            stop: stop.clone(),
            unregister: unregister.clone(),
            settles_until: None,
            is_accepted: false,
        };
        let session = runtime.spawn(dialler.dial());
        Ok(Handle { session: Some(session), role, connection, stop, unregister })
    }
}

/// A running workload. A drop of the handle ends the session; the registration stays.
pub struct Handle {
    session: Option<JoinHandle<Result<(), String>>>,
    role: watch::Sender<Role>,
    connection: watch::Sender<ConnectionState>,
    stop: CancellationToken,
    unregister: CancellationToken,
}

impl Handle {
    /// Sends the current role at once. Set the role whenever the role changes: a failover runs on the primary.
    pub fn set_role(&self, role: Role) {
        self.role.send_if_modified(|known| std::mem::replace(known, role) != role);
    }

    pub fn connection(&self) -> watch::Receiver<ConnectionState> {
        self.connection.subscribe()
    }

    /// Ends the session on purpose; the registration stays. Outcomes that the replica has not acknowledged are delivered
    /// before, also over a new connection, for at most 5 s. Running handlers continue, and their ends are journaled: wait
    /// for your own handlers before the runtime ends, for the end of the runtime drops them, with half of an effect,
    /// and `cancelled` does not complete before.
    pub async fn stop(mut self) {
        // regardless of the replica's answer
        let _ = self.end().await;
    }

    /// Ends the session and removes the registration. The replica refuses while an event has begun to prepare this
    /// workload and has yet to restore the workload. The session has ended regardless.
    pub async fn leave(mut self) -> Result<(), StillRegistered> {
        self.unregister.cancel();
        self.end().await.map_err(StillRegistered)
    }

    async fn end(&mut self) -> Result<(), String> {
        self.stop.cancel();
        // the task ends by itself, without a panic
        let ended = async { self.session.take()?.await.ok() };
        ended.await.unwrap_or(Ok(()))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
