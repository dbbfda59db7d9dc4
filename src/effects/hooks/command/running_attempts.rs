//! The attempts of one runner, and the runner's work on their folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::future::pending;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::HookEnvironment;
use super::spool::Folder;
use crate::hooks::{AttemptState, HookOutcome, HookReport, HookUpdate};

pub(super) struct RunningAttempts {
    pub(super) spool: PathBuf,
    pub(super) supervisor: PathBuf,
    /// The lock of the spool, held by the runner.
    pub(super) lock: Weak<File>,
    /// Forgotten attempts whose folders may still exist.
    pub(super) leaving: watch::Sender<BTreeSet<String>>,
    pub(super) surroundings: HookEnvironment,
    /// Never held during disk work.
    pub(super) attempts: Mutex<BTreeMap<String, RunningAttempt>>,
    pub(super) reports: mpsc::Sender<HookReport>,
}

pub(super) struct RunningAttempt {
    pub(super) state: AttemptState,
    pub(super) cancel: CancellationToken,
}

impl RunningAttempts {
    pub(super) fn attempts(&self) -> MutexGuard<'_, BTreeMap<String, RunningAttempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or writes in an attempt's folder, never on a thread of the runtime: a stalled disk must not make the
    /// replica silent. Started work continues after the runner is dropped, and holds the spool's lock until its end, so
    /// the next runner finds no concurrent work. No work is started after the runner is dropped: the calling task ends
    /// with the runner.
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
            // The runtime ends, and the calling task too.
            Err(_) => pending().await,
        }
    }

    pub(super) async fn report(&self, attempt: &str, news: HookUpdate) {
        // The receiver is closed when the replica stops; the outcome is kept.
        let _ = self.reports.send(HookReport { attempt: attempt.to_owned(), news }).await;
    }

    pub(super) async fn end(&self, attempt: &str, ended: HookOutcome) {
        if let Some(entry) = self.attempts().get_mut(attempt) {
            entry.state = AttemptState::Ended(ended.clone());
        }
        self.report(attempt, HookUpdate::Ended(ended)).await;
    }
}
