//! Runs one attempt outside of a replica, with a replica's supervisor, rights and environment, in a temporary folder.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::runner::Runner;
use super::spool::{Folder, IoContext as _};
use super::spool_dir::SpoolOpenError;
use super::{HookCommand, HookEnvironment};
use crate::hooks::{HookOutcome, HookTask, HookUpdate, contract};

/// The replica's own program, also after its file was replaced.
const SUPERVISOR: &str = "/proc/self/exe";

/// The result of a single run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunResult {
    pub ended: HookOutcome,
    /// The standard output, as far as kept, without secrets.
    pub said: String,
    /// The standard error, as far as kept, without secrets.
    pub complained: String,
}

/// The environment of the hook beside `PATH`, `HOME`, `LANG` and its own variables, without the time left.
pub fn told(task: &HookTask) -> Vec<(String, String)> {
    contract::variables(&contract::facts(task)).collect()
}

/// Runs one attempt and passes its updates to `hear`. The attempt is cancelled when `given_up` is ready, and ends soon
/// after.
pub async fn run_alone(
    task: &HookTask,
    command: &HookCommand,
    surroundings: HookEnvironment,
    given_up: impl Future<Output = ()>,
    mut hear: impl FnMut(&HookUpdate),
) -> Result<RunResult, SpoolOpenError> {
    let spool = Spool::make()?;
    let (runner, mut reports) = Runner::open(&spool.0, SUPERVISOR.into(), surroundings)?;
    runner.run(task, command);
    let mut given_up = std::pin::pin!(given_up);
    let mut is_given_up = false;
    let ended = loop {
        tokio::select! {
            () = &mut given_up, if !is_given_up => {
                is_given_up = true;
                runner.cancel(&task.attempt);
            }
            report = reports.recv() => match report.map(|report| report.news) {
                Some(HookUpdate::Ended(ended)) => break ended,
                Some(news) => hear(&news),
                None => break HookOutcome::Lost("the run has ended without a result".to_owned()),
            },
        }
    };
    let folder = Folder::of(&spool.0, &task.attempt);
    let read = |name: &str| {
        let bytes = fs::read(folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(RunResult { ended, said: read("stdout"), complained: read("stderr") })
}

/// Removed when dropped.
struct Spool(PathBuf);

impl Spool {
    /// Creates a new folder for this user only: an existing folder belongs to another process.
    fn make() -> Result<Self, SpoolOpenError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("allclear-hook-{}-{number}", std::process::id()));
        make(&path)?;
        Ok(Self(path))
    }
}

fn make(path: &Path) -> Result<(), SpoolOpenError> {
    DirBuilder::new().mode(0o700).create(path).doing("make", path).map_err(SpoolOpenError::from)
}

impl Drop for Spool {
    fn drop(&mut self) {
        // Only the files of this one hook are lost.
        let _ = fs::remove_dir_all(&self.0);
    }
}
