//! One replica of the demo: a process of this program with a configuration of its own.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::process::ChildProcess;
use allclear_server::config;

/// Environment variables of the package's unit file.
const GIVEN_BACK: [(&str, &str); 2] = [("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

pub(crate) struct LocalReplica {
    pub(crate) name: String,
    pub(crate) status: SocketAddr,
    pub(crate) socket: PathBuf,
    pub(crate) process: ChildProcess,
    configuration: PathBuf,
}

impl LocalReplica {
    pub(crate) fn new(folder: &Path, name: &str, status: SocketAddr) -> Self {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        let (configuration, socket, process) = (file("toml"), file("sock"), ChildProcess::new(file("log")));
        Self { name: name.to_owned(), status, socket, process, configuration }
    }

    pub(crate) fn configure(&self, text: &str) -> io::Result<()> {
        std::fs::write(&self.configuration, text)
    }

    pub(crate) fn start(&mut self, program: &Path) -> io::Result<()> {
        let mut command = Command::new(program);
        // Variables for a real replica must not change the demo's configuration.
        for (name, _) in config::environment().filter(|(name, _)| name.starts_with("ALLCLEAR__")) {
            command.env_remove(name);
        }
        command.envs(GIVEN_BACK);
        command.arg("run").arg("--config").arg(&self.configuration).stdout(self.process.log()?);
        self.process.start(command).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_hold_memory_as_they_do_when_they_are_installed() {
        let unit = include_str!("../../../deploy/systemd/allclear.service");
        let settings = GIVEN_BACK.map(|(name, value)| format!("{name}={value}")).join(" ");
        assert!(unit.lines().any(|line| line == format!("Environment={settings}")), "{settings}");
    }
}
