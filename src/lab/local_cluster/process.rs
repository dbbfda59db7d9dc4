//! A process of the demo, with its log: started in a process group of its own, and ended at the latest with the demo.

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
/// Number of log lines shown after a failure.
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

    /// Starts the process. Standard output goes where the command says, and standard error to the log.
    pub(super) fn start(&mut self, mut command: Command) -> io::Result<&mut Child> {
        command.stdin(Stdio::null()).stderr(self.log()?);
        // In a process group of its own, so that Ctrl-C reaches only the demo, which then stops all processes in
        // order.
        Ok(self.child.insert(command.process_group(0).kill_on_drop(true).spawn()?))
    }

    pub(crate) fn runs(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    /// The exit status, if the process has ended without a request to stop.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok().flatten();
        if status.is_some() {
            self.child = None;
        }
        status
    }

    /// Kills the process, like a machine that loses power.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        match self.child.take() {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    pub(super) fn ask_to_stop(&self) {
        self.signal(Signal::SIGTERM);
        // A stopped process would not receive the signal.
        self.signal(Signal::SIGCONT);
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok()) {
            // Fails only when the process has just ended.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Waits for the process to end, and kills the process after `STOP_WITHIN`.
    pub(super) async fn see_off(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if timeout(STOP_WITHIN, child.wait()).await.is_err() {
            // Drop kills the process in any case.
            let _ = child.kill().await;
        }
    }

    /// The last lines of the process' log.
    pub(crate) fn tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(TAIL);
        format!("-- the end of {}\n{}", self.log.display(), lines[from..].join("\n"))
    }
}
