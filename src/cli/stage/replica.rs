//! One replica of the demo: a process of this program with a configuration of its own.

use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::config;

/// A replica stops in good order within 4 s.
const STOP_WITHIN: Duration = Duration::from_secs(6);
/// Of its log, when something went wrong.
const TAIL: usize = 15;

pub(in crate::cli) struct Replica {
    pub(in crate::cli) name: String,
    pub(in crate::cli) status: SocketAddr,
    pub(in crate::cli) socket: PathBuf,
    configuration: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl Replica {
    pub(in crate::cli) fn new(folder: &Path, name: &str, status: SocketAddr) -> Self {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        let (configuration, socket, log) = (file("toml"), file("sock"), file("log"));
        Self { name: name.to_owned(), status, socket, configuration, log, child: None }
    }

    pub(in crate::cli) fn configure(&self, text: &str) -> io::Result<()> {
        std::fs::write(&self.configuration, text)
    }

    pub(in crate::cli) fn start(&mut self, program: &Path) -> io::Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(program);
        // What is meant for a real replica must not bend the demo's.
        for (name, _) in config::environment().filter(|(name, _)| name.starts_with("ALLCLEAR__")) {
            command.env_remove(name);
        }
        command.arg("run").arg("--config").arg(&self.configuration);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // In its own group, so that Ctrl-C reaches the demo alone, which then stops everything in order.
        self.child = Some(command.process_group(0).kill_on_drop(true).spawn()?);
        Ok(())
    }

    pub(in crate::cli) fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// How it ended, if it has ended without having been told to.
    pub(in crate::cli) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok().flatten();
        if status.is_some() {
            self.child = None;
        }
        status
    }

    /// As a machine that loses power.
    pub(in crate::cli) async fn kill(&mut self) -> io::Result<()> {
        match self.child.take() {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    pub(in crate::cli) fn ask_to_stop(&self) {
        if let Some(pid) = self.child.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok()) {
            // Only fails when it has just ended.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }

    /// Waits for its end, and sees to it when it takes too long.
    pub(in crate::cli) async fn see_off(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if timeout(STOP_WITHIN, child.wait()).await.is_err() {
            // Dropped, it is killed in any case.
            let _ = child.kill().await;
        }
    }

    /// The last lines of its log.
    pub(in crate::cli) fn tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(TAIL);
        format!("-- the end of {}\n{}", self.log.display(), lines[from..].join("\n"))
    }
}
