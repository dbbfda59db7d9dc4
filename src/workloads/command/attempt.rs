//! One attempt as the replica sees it: started or found again, watched until its supervisor is gone, and settled.

use std::fs::File;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::runner::Shared;
use super::spool::{Folder, Outcome, Progress, Request};
use super::{clock, process};
use crate::machine::time::Timestamp;
use crate::workloads::{Ended, News};

/// How often progress is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often it is looked whether a supervisor lives that another process began.
const PROBE_EVERY: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 20;

/// What a folder says.
pub(super) enum Found {
    Ended(Ended),
    /// Its supervisor lives.
    Running,
    /// Nothing was run, for certain. Who holds the lock may remove the folder.
    NeverBegun(File),
    /// It may have been run, and nobody is left who knows; the lock keeps it so while it is settled.
    Lost {
        reason: String,
        broken: bool,
        lock: Option<File>,
    },
}

/// Reads a folder without trusting it.
pub(super) fn look(folder: &Folder) -> Found {
    if let Ok(Some(outcome)) = folder.outcome() {
        return Found::Ended(outcome.ended);
    }
    let lock = match folder.lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => return Found::Running,
        Err(error) => return Found::Lost { reason: error.to_string(), broken: true, lock: None },
    };
    // Once more: it may have ended in between.
    let lost = |reason: &str, broken, lock| Found::Lost { reason: reason.to_owned(), broken, lock: Some(lock) };
    let (request, mark) = match (folder.outcome(), folder.request(), folder.mark()) {
        (Ok(Some(outcome)), ..) => return Found::Ended(outcome.ended),
        (Ok(None), Ok(request), Ok(mark)) => (request, mark),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return lost(&error.to_string(), true, lock),
    };
    match (request, mark) {
        // After a restart of the machine the mark may be missing though the hook was started.
        (Some(request), _) if request.place != process::place() => {
            lost("the machine or its container was restarted while it ran", false, lock)
        }
        (_, None) => Found::NeverBegun(lock),
        (Some(_), Some(_)) => {
            let complaint = folder.complaint();
            let reason = if complaint.is_empty() { "its supervisor was killed while it ran" } else { &complaint };
            lost(reason, false, lock)
        }
        (None, Some(_)) => lost("its request is gone", true, lock),
    }
}

enum Supervisor {
    Ours(Child),
    /// Begun by an earlier replica.
    Elder,
}

impl Supervisor {
    async fn gone(&mut self, folder: &Folder) {
        match self {
            Self::Ours(child) => {
                let _ = child.wait().await;
            }
            Self::Elder => {
                while let Ok(None) = folder.lock() {
                    sleep(PROBE_EVERY).await;
                }
            }
        }
    }

    fn terminate(&self, folder: &Folder) {
        match self {
            Self::Ours(child) => {
                if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
                    // Only fails when it has just ended.
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
            }
            Self::Elder => {
                let mark = folder.mark().ok().flatten().filter(|mark| mark.place == process::place());
                if let Some(mark) = mark {
                    mark.supervisor.terminate();
                }
            }
        }
    }
}

/// Starts an attempt and sees it to its end.
pub(super) async fn run(shared: Arc<Shared>, attempt: String, request: Request, cancel: CancellationToken) {
    let folder = Folder::of(&shared.spool, &attempt);
    match begin(&shared, &folder, request, &cancel).await {
        Ok(supervisor) => watch(&shared, &attempt, &folder, supervisor, &cancel).await,
        Err(ended) => shared.end(&attempt, ended).await,
    }
}

/// Takes up an attempt that an earlier replica began.
pub(super) async fn take_up(shared: Arc<Shared>, attempt: String, cancel: CancellationToken) {
    let folder = Folder::of(&shared.spool, &attempt);
    watch(&shared, &attempt, &folder, Supervisor::Elder, &cancel).await;
}

/// Rather than run without a memory of it, an attempt is blocked.
async fn begin(
    shared: &Shared,
    folder: &Folder,
    request: Request,
    cancel: &CancellationToken,
) -> Result<Supervisor, Ended> {
    let created = {
        let folder = folder.clone();
        tokio::task::spawn_blocking(move || folder.create(&request)).await
    };
    let lock = match created {
        Ok(Ok(lock)) => lock,
        Ok(Err(error)) if error.is_there_already() => return Err(Ended::Unknown(error.to_string())),
        Ok(Err(error)) => return Err(not_begun(&error.to_string())),
        Err(error) => return Err(not_begun(&error.to_string())),
    };
    if cancel.is_cancelled() {
        discard(folder);
        return Err(Ended::Cancelled);
    }
    spawn(shared, folder, lock).map(Supervisor::Ours).map_err(|error| {
        discard(folder);
        not_begun(&error)
    })
}

fn spawn(shared: &Shared, folder: &Folder, lock: File) -> Result<Child, String> {
    let program = &shared.supervisor;
    let complaints = folder.complaints().map_or_else(|_| Stdio::null(), Stdio::from);
    Command::new(program)
        .arg0("allclear")
        .arg("supervise")
        .arg(folder.path())
        .env_clear()
        .stdin(lock)
        .stdout(Stdio::null())
        .stderr(complaints)
        .spawn()
        .map_err(|error| format!("cannot start its supervisor {}: {error}", program.display()))
}

fn not_begun(reason: &str) -> Ended {
    Ended::Blocked(format!("it was not started: {reason}"))
}

pub(super) fn discard(folder: &Folder) {
    if let Err(error) = folder.discard() {
        warn!(%error, "a hook's folder stays behind");
    }
}

async fn watch(
    shared: &Shared,
    attempt: &str,
    folder: &Folder,
    mut supervisor: Supervisor,
    cancel: &CancellationToken,
) {
    let mut told = Progress::default();
    let mut asked_to_end = false;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = supervisor.gone(folder) => break,
            () = cancel.cancelled(), if !asked_to_end => {
                asked_to_end = true;
                supervisor.terminate(folder);
            }
            _ = looks.tick() => {
                tell_progress(shared, attempt, folder, &mut told).await;
                if asked_to_end {
                    supervisor.terminate(folder);
                }
            }
        }
    }
    tell_progress(shared, attempt, folder, &mut told).await;
    let ended = settle(attempt, folder, cancel.is_cancelled()).await;
    shared.end(attempt, ended).await;
}

async fn tell_progress(shared: &Shared, attempt: &str, folder: &Folder, told: &mut Progress) {
    // Only shown; what cannot be read is not.
    let Ok(Some(progress)) = folder.progress() else { return };
    if progress != *told {
        told.clone_from(&progress);
        let expected_end = progress.expected_end_ms.map(Timestamp);
        shared.report(attempt, News::Progress { text: progress.text, expected_end }).await;
    }
}

/// The outcome, now that no supervisor is there any more. What is found out here is written down, so that a later
/// replica comes to no other end.
pub(super) async fn settle(attempt: &str, folder: &Folder, cancelled: bool) -> Ended {
    let mut found = look(folder);
    for _ in 0..LOCK_TRIES {
        if !matches!(found, Found::Running) {
            break;
        }
        // A process that is being started right now may hold any lock for a moment, until it becomes its program.
        sleep(PROBE_EVERY).await;
        found = look(folder);
    }
    let (ended, broken, _lock) = match found {
        Found::Ended(ended) => return ended,
        Found::Running => (Ended::Unknown("somebody else holds its lock".to_owned()), true, None),
        Found::NeverBegun(lock) if cancelled => (Ended::Cancelled, false, Some(lock)),
        Found::NeverBegun(lock) => {
            let complaint = folder.complaint();
            let reason =
                if complaint.is_empty() { "its supervisor was killed before it could begin" } else { &complaint };
            (not_begun(reason), false, Some(lock))
        }
        Found::Lost { mut reason, broken, lock } => {
            if !end_what_is_left(folder).await {
                reason.push_str(", and some of its processes cannot be killed");
            }
            (Ended::Unknown(reason), broken, lock)
        }
    };
    warn!(attempt, %ended, broken, folder = %folder.path().display(), "a hook was settled without its supervisor");
    let outcome = Outcome { ended, at_ms: clock::now().0, broken };
    if let Err(error) = folder.settle(&outcome) {
        error!(attempt, %error, "a hook's outcome is known to this process only");
    }
    outcome.ended
}

async fn end_what_is_left(folder: &Folder) -> bool {
    match folder.mark() {
        Ok(Some(mark)) if mark.place == process::place() => process::end_session(mark.supervisor).await,
        Ok(_) => true,
        Err(error) => {
            error!(%error, "whether a hook's processes are left cannot be found out");
            true
        }
    }
}
