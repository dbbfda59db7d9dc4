//! The runner of command hooks: run, cancel, query, forget.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::attempt::{self, FolderState};
use super::attempt_files::{OutcomeRecord, RunRecord};
use super::first_use::{Memory, NEW};
use super::name::{decode, is_usable};
use super::running_attempts::{RunningAttempt, RunningAttempts};
use super::spool::{Folder, GONE, IoContext};
use super::spool_dir::{self, SpoolOpenError};
use super::{HookCommand, HookEnvironment, clock, process};
use crate::hooks::{AttemptState, HookOutcome, HookReport, HookTask, HookUpdate, contract};

/// The replica's own file in the folder of the runner: the hooks of former configurations.
pub const FORMER_HOOKS: &str = ".hooks.json";

/// Further attempts are blocked until a running attempt has ended.
const MAX_RUNNING: usize = 64;
const REPORTS: usize = 256;

/// Runs attempts, each once. Must be created and used inside a tokio runtime. After `open`, no call blocks, not even on
/// the disk.
///
/// The runner is dropped when the replica stops, in good order or not: running attempts continue under their
/// supervisors, and the next runner of the folder adopts the attempts.
pub struct Runner {
    pub memory: Memory,
    shared: Arc<RunningAttempts>,
    watchers: Mutex<JoinSet<()>>,
    _lock: Arc<File>,
}

impl Runner {
    /// Adopts the running attempts of a previous run. `supervisor` is a program that calls [`super::supervise`] as
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
        let shared = Arc::new(RunningAttempts {
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

    /// Runs the attempt, unless the attempt is known: then a running attempt continues, and an ended attempt is
    /// reported again.
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

    /// Cancels a running attempt, reported as cancelled unless the hook ends by itself before. An ended attempt is
    /// reported again. An unknown attempt was never started and so is cancelled already.
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

    /// All known attempts, to find attempts without a use in the cluster.
    pub fn attempts(&self) -> Vec<(String, AttemptState)> {
        self.shared.attempts().iter().map(|(attempt, entry)| (attempt.clone(), entry.state.clone())).collect()
    }

    /// Forgets an attempt with a committed outcome. A running attempt is not forgotten.
    pub fn forget(&self, attempt: &str) {
        let mut attempts = self.shared.attempts();
        if attempts.get(attempt).is_some_and(|entry| matches!(entry.state, AttemptState::Ended(_))) {
            attempts.remove(attempt);
            // Before the id can be requested again, which needs the lock of the attempts.
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
        if [".lock", FORMER_HOOKS, NEW].contains(&name) {
            return;
        }
        if let Some(gone) = name.strip_prefix(GONE) {
            let _ = fs::remove_dir_all(self.shared.spool.join(name));
            return info!(folder = gone, "files of a removed hook deleted");
        }
        let is_folder = || fs::symlink_metadata(self.shared.spool.join(name)).is_ok_and(|found| found.is_dir());
        let Some(attempt) = decode(name).filter(|_| is_folder()) else {
            return warn!(name, spool = %self.shared.spool.display(), "foreign entry in the hook directory ignored");
        };
        let folder = Folder::of(&self.shared.spool, &attempt);
        match attempt::look(&folder) {
            FolderState::Ended(OutcomeRecord { ended, .. }) => {
                let entry = RunningAttempt { state: AttemptState::Ended(ended), cancel: CancellationToken::new() };
                self.shared.attempts().insert(attempt, entry);
            }
            FolderState::NeverBegun { .. } => attempt::discard(&folder),
            // A lost attempt is settled by the watcher too: ending the rest of its processes takes time.
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
        return Err(HookOutcome::Failed("the id of the attempt is empty or too long".to_owned()));
    }
    if left.is_zero() {
        return Err(HookOutcome::TimedOut);
    }
    if running >= MAX_RUNNING {
        return Err(HookOutcome::Blocked(format!(
            "the hook was not started: {running} hooks are running on this replica already"
        )));
    }
    Ok(())
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
