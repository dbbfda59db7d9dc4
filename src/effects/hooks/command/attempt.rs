//! One attempt of a command hook in the replica: started or found again, and watched until its supervisor has recorded
//! the outcome or is gone.

mod folder_state;

use std::fs::File;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

pub(super) use self::folder_state::{FolderState, look};
use super::attempt_files::{CancelRecord, OutcomeRecord, ProgressRecord, RunRecord, StartRecord};
use super::running_attempts::RunningAttempts;
use super::spool::Folder;
use super::{clock, process};
use crate::hooks::{HookOutcome, HookUpdate};
use allclear_core::model::time::Timestamp;

/// Interval of progress polls. Each reported progress is an entry of the log.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval of liveness probes of a supervisor from another process.
const PROBE_EVERY: Duration = Duration::from_millis(50);
const LOCK_TRIES: u32 = 20;
/// A stalled disk delays a cancellation by no more than this.
const RECORD_WITHIN: Duration = Duration::from_secs(1);

/// Starts an attempt and watches the attempt until the end.
pub(super) async fn run(shared: Arc<RunningAttempts>, attempt: String, request: RunRecord, cancel: CancellationToken) {
    let folder = Folder::of(&shared.spool, &attempt);
    // Never fails: the sender is part of `shared`.
    let _ = shared.leaving.subscribe().wait_for(|leaving| !leaving.contains(&attempt)).await;
    let (own, cancelled) = (shared.clone(), cancel.clone());
    match shared.on(&folder, move |folder| begin(&own, folder, &request, &cancelled)).await {
        Ok(supervisor) => watch(&shared, &attempt, &folder, Some(supervisor), &cancel).await,
        Err(ended) => shared.end(&attempt, ended).await,
    }
}

/// Adopts an attempt from a previous run of the replica. A recorded cancellation goes on: the previous run may have
/// ended before the signal.
pub(super) async fn take_up(shared: Arc<RunningAttempts>, attempt: String, cancel: CancellationToken) {
    let folder = Folder::of(&shared.spool, &attempt);
    if let Ok(Some(_)) = shared.on(&folder, Folder::read::<CancelRecord>).await {
        cancel.cancel();
    }
    watch(&shared, &attempt, &folder, None, &cancel).await;
}

/// Removes the folder of an attempt with a committed outcome.
pub(super) async fn clear_away(shared: Arc<RunningAttempts>, attempt: String) {
    let discard_if_there = |folder: &Folder| {
        if folder.path().exists() {
            discard(folder);
        }
    };
    shared.on(&Folder::of(&shared.spool, &attempt), discard_if_there).await;
    shared.leaving.send_modify(|leaving| _ = leaving.remove(&attempt));
}

/// Starts the supervisor. An attempt is blocked if no record of the attempt can be written.
fn begin(
    shared: &RunningAttempts,
    folder: &Folder,
    request: &RunRecord,
    cancel: &CancellationToken,
) -> Result<Child, HookOutcome> {
    let lock = folder.create(request).map_err(|error| {
        let reason = error.to_string();
        if error.is_there_already() { HookOutcome::Unknown(reason) } else { not_begun(&reason) }
    })?;
    let started = if cancel.is_cancelled() { Err(HookOutcome::Cancelled) } else { spawn(shared, folder, lock) };
    if started.is_err() {
        discard(folder);
    }
    started
}

fn spawn(shared: &RunningAttempts, folder: &Folder, lock: File) -> Result<Child, HookOutcome> {
    let program = &shared.supervisor;
    let complaints = folder.complaints().map_or_else(|_| Stdio::null(), Stdio::from);
    Command::new(program)
        .arg0("allclear")
        .arg("supervise")
        .arg(folder.path())
        .env_clear()
        .envs(&shared.surroundings.loaded)
        .stdin(lock)
        .stdout(Stdio::piped())
        .stderr(complaints)
        .spawn()
        .map_err(|error| not_begun(&format!("cannot start the supervisor {} of the hook: {error}", program.display())))
}

fn not_begun(reason: &str) -> HookOutcome {
    HookOutcome::Blocked(format!("the hook was not started: {reason}"))
}

pub(super) fn discard(folder: &Folder) {
    if let Err(error) = folder.discard() {
        warn!(%error, "hook directory not removed");
    }
}

/// `supervisor` is `None` for an attempt from a previous run of the replica.
async fn watch(
    shared: &RunningAttempts,
    attempt: &str,
    folder: &Folder,
    supervisor: Option<Child>,
    cancel: &CancellationToken,
) {
    let mut told = ProgressRecord::default();
    let mut asked_to_end = false;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The process id is not reused before `gone` has reaped the supervisor.
    let own = supervisor.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
    let mut gone = pin!(gone(shared, folder, supervisor));
    let settled = loop {
        tokio::select! {
            biased;
            settled = &mut gone => break settled,
            () = cancel.cancelled(), if !asked_to_end => {
                asked_to_end = true;
                record_cancellation(shared, attempt, folder).await;
                terminate(shared, folder, own).await;
            }
            _ = looks.tick() => {
                tell_progress(shared, attempt, folder, &mut told).await;
                if asked_to_end {
                    terminate(shared, folder, own).await;
                }
            }
        }
    };
    let OutcomeRecord { ended, progress, .. } = match settled {
        Some(outcome) => outcome,
        None => settle(shared, attempt, folder, cancel.is_cancelled()).await,
    };
    // Reported together with the outcome: one write brings both to the disks of the replicas.
    match progress {
        Some(progress) => tell(shared, attempt, progress, &mut told).await,
        None => tell_progress(shared, attempt, folder, &mut told).await,
    }
    shared.end(attempt, ended).await;
}

/// Returns when the supervisor is gone, or earlier when the supervisor has announced the outcome and the file exists.
async fn gone(shared: &RunningAttempts, folder: &Folder, supervisor: Option<Child>) -> Option<OutcomeRecord> {
    match supervisor {
        Some(mut child) => {
            let says = child.stdout.take();
            tokio::select! {
                _ = child.wait() => {}
                Some(outcome) = settled(shared, folder, says) => {
                    // No caller waits for the supervisor's end, but the process has to be reaped.
                    tokio::spawn(async move { child.wait().await });
                    return Some(outcome);
                }
            }
        }
        None => {
            while let Ok(None) = shared.on(folder, Folder::lock).await {
                sleep(PROBE_EVERY).await;
            }
        }
    }
    None
}

/// The outcome, at the first output of the supervisor; `None` if the output is something else, or none comes.
async fn settled(shared: &RunningAttempts, folder: &Folder, says: Option<ChildStdout>) -> Option<OutcomeRecord> {
    let Ok(1..) = says?.read(&mut [0]).await else { return None };
    shared.on(folder, Folder::read).await.ok().flatten()
}

/// Recorded before the signal, so the supervisor distinguishes the cancellation from a signal of another sender. The
/// signal is sent in any case: without the record, the outcome is unknown instead of cancelled.
async fn record_cancellation(shared: &RunningAttempts, attempt: &str, folder: &Folder) {
    let record = CancelRecord { at_ms: clock::now().0 };
    let recording = shared.on(folder, move |folder| folder.write(&record).map(drop));
    match timeout(RECORD_WITHIN, recording).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(attempt, %error, "hook cancellation not recorded"),
        Err(_) => warn!(attempt, "hook cancellation not recorded in time"),
    }
}

/// A supervisor from another process is known by its start record, which may be missing yet: the caller tries again.
async fn terminate(shared: &RunningAttempts, folder: &Folder, own: Option<Pid>) {
    if let Some(supervisor) = own {
        // Only fails when the supervisor has just ended.
        let _ = kill(supervisor, Signal::SIGTERM);
    } else if let Ok(Some(mark)) = shared.on(folder, Folder::read::<StartRecord>).await
        && mark.place == process::place()
    {
        mark.supervisor.terminate();
    }
}

async fn tell_progress(shared: &RunningAttempts, attempt: &str, folder: &Folder, told: &mut ProgressRecord) {
    // Progress is only shown; unreadable progress is ignored.
    if let Ok(Some(progress)) = shared.on(folder, Folder::read).await {
        tell(shared, attempt, progress, told).await;
    }
}

async fn tell(shared: &RunningAttempts, attempt: &str, progress: ProgressRecord, told: &mut ProgressRecord) {
    if progress != *told {
        told.clone_from(&progress);
        let expected_end = progress.expected_end_ms.map(Timestamp);
        shared.report(attempt, HookUpdate::Progress { text: progress.text, expected_end }).await;
    }
}

/// The outcome, after the end of the supervisor. An outcome determined here is persisted, so a later replica reaches
/// the same result.
async fn settle(shared: &RunningAttempts, attempt: &str, folder: &Folder, cancelled: bool) -> OutcomeRecord {
    let mut found = shared.on(folder, look).await;
    for _ in 0..LOCK_TRIES {
        if !matches!(found, FolderState::Running) {
            break;
        }
        // A process between fork and exec may hold any lock for a short time.
        sleep(PROBE_EVERY).await;
        found = shared.on(folder, look).await;
    }
    let (ended, lock) = match found {
        FolderState::Ended(outcome) => return outcome,
        FolderState::Running => (HookOutcome::Unknown("another process holds the lock of the hook".to_owned()), None),
        FolderState::NeverBegun { lock, .. } if cancelled => (HookOutcome::Cancelled, Some(lock)),
        FolderState::NeverBegun { complaint, lock } => {
            let reason = if complaint.is_empty() {
                "the supervisor was killed before the start of the hook"
            } else {
                &complaint
            };
            (not_begun(reason), Some(lock))
        }
        FolderState::Lost { mut reason, lock } => {
            if !end_what_is_left(shared, folder).await {
                reason.push_str(", and some of its processes cannot be killed");
            }
            (HookOutcome::Lost(reason), lock)
        }
    };
    warn!(attempt, %ended, folder = %folder.path().display(), "hook outcome recorded without its supervisor");
    let outcome = OutcomeRecord { ended, at_ms: clock::now().0, progress: None };
    let settling = shared.on(folder, move |folder| {
        // The lock is released after the write, not before.
        let _lock = lock;
        (folder.write(&outcome), outcome)
    });
    let (settled, outcome) = settling.await;
    if let Err(error) = settled {
        error!(attempt, %error, "hook outcome not written to the disk");
    }
    outcome
}

async fn end_what_is_left(shared: &RunningAttempts, folder: &Folder) -> bool {
    match shared.on(folder, Folder::read::<StartRecord>).await {
        Ok(Some(mark)) if mark.place == process::place() => process::end_session(mark.supervisor).await,
        Ok(_) => true,
        Err(error) => {
            error!(%error, "remaining processes of a hook not determined");
            true
        }
    }
}
