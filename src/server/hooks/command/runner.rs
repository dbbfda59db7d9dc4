//! The door to command hooks: run, cancel, ask, forget.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::future::pending;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::attempt::{self, FolderState};
use super::attempt_files::{OutcomeRecord, RunRecord};
use super::first_use::{Memory, NEW};
use super::name::{decode, is_usable};
use super::spool::{Folder, GONE, IoContext};
use super::spool_dir::{self, SpoolOpenError};
use super::{HookCommand, HookEnvironment, clock, process};
use crate::hooks::{AttemptState, HookOutcome, HookReport, HookTask, HookUpdate, contract};

/// Further ones are blocked until one has ended.
const MAX_RUNNING: usize = 64;
const REPORTS: usize = 256;

/// Runs attempts, each once. Made and used inside a tokio runtime. Once it is open, none of its calls waits for anything,
/// the disk included.
///
/// Dropping it is the replica's stop, in good order or not: what runs goes on under its supervisors, and the next
/// runner of the same folder takes it up.
pub struct Runner {
    pub memory: Memory,
    shared: Arc<RunnerInner>,
    watchers: Mutex<JoinSet<()>>,
    _lock: Arc<File>,
}

pub(super) struct RunnerInner {
    pub(super) spool: PathBuf,
    pub(super) supervisor: PathBuf,
    /// Of the spool, held by the runner.
    lock: Weak<File>,
    /// Attempts that are no longer known and whose folders may still be there.
    pub(super) leaving: watch::Sender<BTreeSet<String>>,
    pub(super) surroundings: HookEnvironment,
    /// Never held over disk work.
    attempts: Mutex<BTreeMap<String, RunningAttempt>>,
    reports: mpsc::Sender<HookReport>,
}

struct RunningAttempt {
    state: AttemptState,
    cancel: CancellationToken,
}

impl Runner {
    /// Takes up what an earlier replica left running. `supervisor` is a program that calls [`super::supervise`] as
    /// `PROGRAM supervise FOLDER`; `/proc/self/exe` stays right when the file is replaced.
    pub fn open(
        spool: &Path,
        supervisor: PathBuf,
        surroundings: HookEnvironment,
    ) -> Result<(Self, mpsc::Receiver<HookReport>), SpoolOpenError> {
        let spool = spool_dir::make(spool)?;
        let memory = Memory::of(&spool)?;
        let lock = Arc::new(spool_dir::lock(&spool)?);
        let (reports, receiver) = mpsc::channel(REPORTS);
        let names = fs::read_dir(&spool).doing("read", &spool)?;
        let shared = Arc::new(RunnerInner {
            spool,
            supervisor,
            lock: Arc::downgrade(&lock),
            leaving: watch::Sender::default(),
            surroundings,
            attempts: Mutex::default(),
            reports,
        });
        let runner = Self { memory, shared, watchers: Mutex::default(), _lock: lock };
        for name in names.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())) {
            runner.take_up(&name);
        }
        Ok((runner, receiver))
    }

    /// Runs it, unless that was asked before: then a running one goes on, and an ended one is reported again.
    pub fn run(&self, task: &HookTask, command: &HookCommand) {
        let attempt = task.attempt.clone();
        let mut attempts = self.shared.attempts();
        match attempts.get(&attempt).map(|entry| &entry.state) {
            Some(AttemptState::Running) => return,
            Some(AttemptState::Ended(ended)) => return self.report(attempt, ended.clone()),
            None => {}
        }
        let running = attempts.values().filter(|entry| entry.state == AttemptState::Running).count();
        if let Err(ended) = acceptable(&task.attempt, task.deadline.left(), running) {
            return self.report(attempt, ended);
        }
        let cancel = CancellationToken::new();
        attempts.insert(attempt.clone(), RunningAttempt { state: AttemptState::Running, cancel: cancel.clone() });
        drop(attempts);
        let request = self.request(task, command);
        self.watch(attempt::run(self.shared.clone(), attempt, request, cancel));
    }

    /// Ends a running attempt; it is reported as cancelled unless it ends by itself before. One that has ended is
    /// reported again; one that is not known was never begun and so is cancelled already.
    pub fn cancel(&self, attempt: &str) {
        let state = self.shared.attempts().get(attempt).map(|entry| (entry.state.clone(), entry.cancel.clone()));
        match state {
            Some((AttemptState::Running, cancel)) => cancel.cancel(),
            Some((AttemptState::Ended(ended), _)) => self.report(attempt.to_owned(), ended),
            None => self.report(attempt.to_owned(), HookOutcome::Cancelled),
        }
    }

    pub fn known(&self, attempt: &str) -> Option<AttemptState> {
        self.shared.attempts().get(attempt).map(|entry| entry.state.clone())
    }

    /// Everything that is known, to find what the cluster no longer asks for.
    pub fn attempts(&self) -> Vec<(String, AttemptState)> {
        self.shared.attempts().iter().map(|(attempt, entry)| (attempt.clone(), entry.state.clone())).collect()
    }

    /// The outcome is committed: nothing needs to be known any more. A running attempt is not forgotten.
    pub fn forget(&self, attempt: &str) {
        let mut attempts = self.shared.attempts();
        if attempts.get(attempt).is_some_and(|entry| matches!(entry.state, AttemptState::Ended(_))) {
            attempts.remove(attempt);
            // Before the id can be asked for again, which needs the attempts.
            self.shared.leaving.send_modify(|leaving| _ = leaving.insert(attempt.to_owned()));
            self.watch(attempt::clear_away(self.shared.clone(), attempt.to_owned()));
        }
    }

    fn request(&self, task: &HookTask, command: &HookCommand) -> RunRecord {
        let HookEnvironment { path, home, lang, loaded: _ } = &self.shared.surroundings;
        RunRecord {
            place: process::place(),
            command: command.clone(),
            env: [("PATH", path), ("HOME", home), ("LANG", lang)].map(|(k, v)| (k.to_owned(), v.clone())).into(),
            facts: contract::facts(task),
            ends_at: clock::since_boot() + task.deadline.left(),
        }
    }

    fn take_up(&self, name: &str) {
        if [".lock", NEW].contains(&name) {
            return;
        }
        if let Some(gone) = name.strip_prefix(GONE) {
            let _ = fs::remove_dir_all(self.shared.spool.join(name));
            return info!(folder = gone, "removed what was left of a forgotten hook");
        }
        let is_folder = || fs::symlink_metadata(self.shared.spool.join(name)).is_ok_and(|found| found.is_dir());
        let Some(attempt) = decode(name).filter(|_| is_folder()) else {
            return warn!(name, spool = %self.shared.spool.display(), "not the folder of a hook; left alone");
        };
        let folder = Folder::of(&self.shared.spool, &attempt);
        match attempt::look(&folder) {
            FolderState::Ended(OutcomeRecord { ended, .. }) => {
                let entry = RunningAttempt { state: AttemptState::Ended(ended), cancel: CancellationToken::new() };
                self.shared.attempts().insert(attempt, entry);
            }
            FolderState::NeverBegun { .. } => attempt::discard(&folder),
            // What is lost is settled there too: ending what is left of it takes time.
            FolderState::Running | FolderState::Lost { .. } => {
                let cancel = CancellationToken::new();
                self.shared
                    .attempts()
                    .insert(attempt.clone(), RunningAttempt { state: AttemptState::Running, cancel: cancel.clone() });
                self.watch(attempt::take_up(self.shared.clone(), attempt, cancel));
            }
        }
    }

    fn report(&self, attempt: String, ended: HookOutcome) {
        let shared = self.shared.clone();
        self.watch(async move { shared.report(&attempt, HookUpdate::Ended(ended)).await });
    }

    fn watch(&self, watcher: impl Future<Output = ()> + Send + 'static) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        while watchers.try_join_next().is_some() {}
        watchers.spawn(watcher);
    }
}

fn acceptable(attempt: &str, left: Duration, running: usize) -> Result<(), HookOutcome> {
    if !is_usable(attempt) {
        return Err(HookOutcome::Failed("the attempt's id is too long to be kept, or empty".to_owned()));
    }
    if left.is_zero() {
        return Err(HookOutcome::TimedOut);
    }
    if running >= MAX_RUNNING {
        return Err(HookOutcome::Blocked(format!("it was not started: {running} hooks are running here already")));
    }
    Ok(())
}

impl RunnerInner {
    fn attempts(&self) -> MutexGuard<'_, BTreeMap<String, RunningAttempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or writes in an attempt's folder, never on a thread of the runtime: a disk that stalls must not make the
    /// replica silent. What was begun goes on when the runner is dropped, and holds the spool's lock until it is done,
    /// so that the next runner finds nobody at work. Nothing is begun after the runner: whoever asks then ends with it.
    pub(super) async fn on<T: Send + 'static>(
        &self,
        folder: &Folder,
        work: impl FnOnce(&Folder) -> T + Send + 'static,
    ) -> T {
        let Some(lock) = self.lock.upgrade() else { return pending().await };
        let folder = folder.clone();
        let work = move || {
            let done = work(&folder);
            drop(lock);
            done
        };
        match spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime ends, and whoever asked with it.
            Err(_) => pending().await,
        }
    }

    pub(super) async fn report(&self, attempt: &str, news: HookUpdate) {
        // Nobody listens any more when the replica stops; the outcome is kept.
        let _ = self.reports.send(HookReport { attempt: attempt.to_owned(), news }).await;
    }

    pub(super) async fn end(&self, attempt: &str, ended: HookOutcome) {
        if let Some(entry) = self.attempts().get_mut(attempt) {
            entry.state = AttemptState::Ended(ended.clone());
        }
        self.report(attempt, HookUpdate::Ended(ended)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_run_at_once_and_the_next_one_is_to_come_again() {
        let later = Duration::MAX;
        assert_eq!(acceptable("1", later, MAX_RUNNING - 1), Ok(()));
        assert!(matches!(acceptable("1", later, MAX_RUNNING), Err(HookOutcome::Blocked(_))));
    }

    #[test]
    fn nothing_is_begun_after_its_deadline_or_without_a_usable_id() {
        assert_eq!(acceptable("1", Duration::ZERO, 0), Err(HookOutcome::TimedOut));
        assert!(matches!(acceptable("", Duration::MAX, 0), Err(HookOutcome::Failed(_))));
    }
}
