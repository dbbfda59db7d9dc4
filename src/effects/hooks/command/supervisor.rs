//! The supervisor: a small process that runs one attempt, ends the attempt at its deadline, and writes the outcome to
//! the attempt's folder. The supervisor survives the replica, tells a cancellation from a signal of another sender, and
//! reports only that the outcome is written.

use std::io::{self, Write};
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{getpid, getsid, setsid};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::attempt_files::{CancelRecord, OutcomeRecord, ProgressRecord, RunRecord, StartRecord};
use super::environment::Given;
use super::spool::{Folder, IoContext, SpoolError};
use super::verdict::{Work, of_cancelled, of_foreign_signal, verdict};
use super::{clock, output, process, start};
use crate::hooks::{HookOutcome, close_descriptors, contract};
use crate::secrets::Secrets;
use allclear_core::model::workload::Intent;

/// The minimum interval of progress writes.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// A process left running by a hook may keep the output open; the supervisor waits for no longer than this.
const DRAIN: Duration = Duration::from_millis(50);
const SETTLE_TRIES: u32 = 60;
const SETTLE_EVERY: Duration = Duration::from_millis(500);
/// Signals set to ignored by people and shells for the programs they start.
const IGNORABLE: [Signal; 10] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGALRM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGXFSZ,
];

/// Runs the attempt of this folder, as `allclear supervise FOLDER`. Standard input is the folder's lock, taken by the
/// replica, so the lock is never free between the two processes.
pub fn supervise(folder: &Path) -> ExitCode {
    close_descriptors();
    // Files of a hook are readable only by its user, unless the hook sets another mode.
    umask(Mode::from_bits_truncate(0o077));
    let run = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("run the attempt in", folder)
        .and_then(|runtime| runtime.block_on(run(&Folder::at(folder))));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The standard error may have no reader any more.
            let _ = writeln!(io::stderr(), "allclear supervise: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: &Folder) -> Result<(), SpoolError> {
    let misuse = |wrong: &str| Err(io::Error::other(wrong.to_owned())).doing("run the attempt in", folder.path());
    if folder.lock()?.is_some() {
        return misuse("the lock of the attempt is not held: only a replica starts a supervisor");
    }
    // The session identifies the hook's processes if this process is killed, so no other process may be in the session.
    if setsid().is_err() && getsid(None) != Ok(getpid()) {
        return misuse("the supervisor must not lead a process group");
    }
    let Some(request) = folder.read::<RunRecord>()? else { return misuse("the request is missing") };
    handle_what_may_be_ignored();
    let mut terminate = signal(SignalKind::terminate()).doing("run the attempt in", folder.path())?;
    let supervisor = process::ProcessId::own().doing("run the attempt in", folder.path())?;
    folder.leave_mark(&StartRecord { place: process::place(), supervisor })?;
    let (ended, progress) = attend(folder, &request, &mut terminate).await;
    let outcome = OutcomeRecord { ended, at_ms: clock::now().0, progress: Some(progress) };
    settle(folder, &outcome).await?;
    // The replica need not wait for the end of this process, and may be gone already.
    let _ = writeln!(io::stdout(), "settled");
    Ok(())
}

/// Installs handlers for signals ignored by the replica's parent, as by `nohup`; hooks would inherit an ignored signal.
/// A handled signal is reset to the default action in the hook.
fn handle_what_may_be_ignored() {
    for ignorable in IGNORABLE {
        // A failure only means a hook with an ignored signal.
        let _ = signal(SignalKind::from_raw(ignorable as i32));
    }
}

/// Retries, because a temporarily full disk must not make an outcome unknown.
async fn settle(folder: &Folder, outcome: &OutcomeRecord) -> Result<(), SpoolError> {
    for _ in 1..SETTLE_TRIES {
        if folder.write(outcome).is_ok() {
            return Ok(());
        }
        sleep(SETTLE_EVERY).await;
    }
    folder.write(outcome).map(drop)
}

enum StopCause {
    Exited(io::Result<ExitStatus>),
    /// By SIGTERM to the supervisor.
    Terminated,
    TimedOut,
}

async fn attend(folder: &Folder, request: &RunRecord, terminate: &mut unix::Signal) -> (HookOutcome, ProgressRecord) {
    let time_left = || request.ends_at.saturating_sub(clock::since_boot());
    let given = match timeout(time_left(), Given::to(&request.command)).await {
        Ok(Ok(given)) => given,
        Ok(Err(why)) => {
            return (HookOutcome::Blocked(format!("the hook was not started: {why}")), ProgressRecord::default());
        }
        Err(_) => return (HookOutcome::TimedOut, ProgressRecord::default()),
    };
    let left = time_left();
    if left.is_zero() {
        return (HookOutcome::TimedOut, ProgressRecord::default());
    }
    let facts = contract::with_time_left(request.facts.clone(), left);
    let mut hook = match start::start(request, &given.env, &facts, left).await {
        Ok(hook) => hook,
        Err(reason) => return (HookOutcome::Failed(reason), ProgressRecord::default()),
    };
    let (heard, hearing) = watch::channel(HookOutput::default());
    if let Some(mut input) = hook.stdin.take() {
        let facts = format!("{}\n", Value::Object(facts));
        // Many hooks do not read their input.
        tokio::spawn(async move { input.write_all(facts.as_bytes()).await });
    }
    let streams = (hook.stdout.take(), hook.stderr.take());
    let reading = tokio::spawn(listen(folder.clone(), streams, heard, given.secrets));
    tokio::spawn(tell(folder.clone(), hearing.clone()));
    let stop = tokio::select! {
        biased;
        status = hook.wait() => StopCause::Exited(status),
        _ = terminate.recv() => StopCause::Terminated,
        () = sleep(left) => StopCause::TimedOut,
    };
    let work = work_of(request);
    let (ended, is_gone) = match stop {
        StopCause::Exited(status) => {
            let _ = timeout(DRAIN, reading).await;
            let is_terminated = timeout(Duration::ZERO, terminate.recv()).await.is_ok();
            let ended = if is_terminated && !is_cancelled(folder) {
                of_foreign_signal(work)
            } else {
                verdict(status, &hearing.borrow().last_complaint, work)
            };
            // A server started by a successful hook stays. Other processes would go on beside the next attempt.
            let is_gone = ended.is_favourable() || process::end_rest().await;
            (ended, is_gone)
        }
        StopCause::Terminated if is_cancelled(folder) => {
            let is_gone = end(&mut hook).await;
            let _ = timeout(DRAIN, reading).await;
            let status = hook.try_wait().ok().flatten();
            (of_cancelled(&request.command.argv, status, &hearing.borrow().last_complaint), is_gone)
        }
        StopCause::Terminated => (of_foreign_signal(work), end(&mut hook).await),
        StopCause::TimedOut => (HookOutcome::TimedOut, end(&mut hook).await),
    };
    let ended = if is_gone { ended } else { unkillable(&ended) };
    let HookOutput { mut progress, last_complaint } = hearing.borrow().clone();
    // Many programs tell on standard error what they would do.
    if is_dry_run(request) && ended == HookOutcome::Done && progress.text.is_none() && !last_complaint.is_empty() {
        progress.text = Some(last_complaint);
    }
    (ended, progress)
}

/// Whether the replica has cancelled the hook. Without a readable record, SIGTERM may be from another sender.
fn is_cancelled(folder: &Folder) -> bool {
    matches!(folder.read::<CancelRecord>(), Ok(Some(_)))
}

fn work_of(request: &RunRecord) -> Work {
    let asks = request.facts.get("intent").and_then(Value::as_str) == Some(Intent::Confirm.as_str());
    if asks { Work::Question } else { Work::Action }
}

fn is_dry_run(request: &RunRecord) -> bool {
    request.facts.get("mode").and_then(Value::as_str) == Some("dry_run")
}

#[derive(Clone, Default)]
struct HookOutput {
    progress: ProgressRecord,
    last_complaint: String,
}

/// Reads both streams to their ends.
async fn listen(
    folder: Folder,
    (stdout, stderr): (Option<ChildStdout>, Option<ChildStderr>),
    heard: watch::Sender<HookOutput>,
    secrets: Secrets,
) {
    let progress = |line: &str| {
        heard.send_if_modified(|heard| note(&mut heard.progress, line));
    };
    let complaint = |line: &str| {
        heard.send_if_modified(|heard| {
            heard.last_complaint = output::bounded(line);
            false
        });
    };
    let (kept_stdout, kept_stderr) = (folder.path().join("stdout"), folder.path().join("stderr"));
    tokio::join!(
        output::keep(stdout, &kept_stdout, &secrets, progress),
        output::keep(stderr, &kept_stderr, &secrets, complaint)
    );
}

fn note(progress: &mut ProgressRecord, line: &str) -> bool {
    if let Some(text) = line.strip_prefix("progress:") {
        progress.text = Some(output::bounded(text.trim()));
        return true;
    }
    let seconds = line.strip_prefix("expect:").and_then(|seconds| seconds.trim().parse().ok());
    let Some(span) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else { return false };
    progress.expected_end_ms = Some(clock::now().plus(span).0);
    true
}

async fn tell(folder: Folder, mut hearing: watch::Receiver<HookOutput>) {
    while hearing.changed().await.is_ok() {
        let progress = hearing.borrow_and_update().progress.clone();
        // Progress is only shown; only the outcome counts.
        let _ = folder.write(&progress);
        sleep(TELL_EVERY).await;
    }
}

/// False if a process of the hook remains.
async fn end(hook: &mut Child) -> bool {
    let Some(leader) = hook.id() else { return true };
    let reap = || {
        let _ = hook.try_wait();
    };
    process::end_hook(leader, reap).await
}

fn unkillable(ended: &HookOutcome) -> HookOutcome {
    HookOutcome::Unknown(format!("{ended}, but some of its processes cannot be killed"))
}
