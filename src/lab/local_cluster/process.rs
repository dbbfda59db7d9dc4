//! A process of the demo, with its log: started in a group of its own, and gone with the demo at the latest.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A replica stops in good order within 4 s.
const STOP_WITHIN: Duration = Duration::from_secs(6);
/// Of its log, when something went wrong.
const TAIL: usize = 15;

pub(crate) struct ChildProcess {
    log: PathBuf,
    child: Option<Child>,
}

impl ChildProcess {
    pub(super) fn new(log: PathBuf) -> Self {
        Self { log, child: None }
    }

    pub(super) fn log(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(&self.log)
    }

    /// What it says goes where the command says, and what goes wrong into its log.
    pub(super) fn start(&mut self, mut command: Command) -> io::Result<&mut Child> {
        command.stdin(Stdio::null()).stderr(self.log()?);
        // In its own group, so that Ctrl-C reaches the demo alone, which then stops everything in order.
        Ok(self.child.insert(command.process_group(0).kill_on_drop(true).spawn()?))
    }

    pub(crate) fn runs(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    /// How it ended, if it has ended without having been told to.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok().flatten();
        if status.is_some() {
            self.child = None;
        }
        status
    }

    /// As a machine that loses power.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        match self.child.take() {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    pub(super) fn ask_to_stop(&self) {
        self.signal(Signal::SIGTERM);
        // One that stands still would not hear of it.
        self.signal(Signal::SIGCONT);
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok()) {
            // Only fails when it has just ended.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Waits for its end, and sees to it when it takes too long.
    pub(super) async fn see_off(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if timeout(STOP_WITHIN, child.wait()).await.is_err() {
            // Dropped, it is killed in any case.
            let _ = child.kill().await;
        }
    }

    /// The last lines of its log.
    pub(crate) fn tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(TAIL);
        format!("-- the end of {}\n{}", self.log.display(), lines[from..].join("\n"))
    }
}
