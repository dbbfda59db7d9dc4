//! A scripted replica, a workload in a process, and the messages between both.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::clients::puppet;
use crate::clients::python;
use crate::clients::replica::Replica;

/// No operation takes this long, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The language of the workload.
#[derive(Clone)]
pub(crate) enum Tongue {
    Rust,
    /// The interpreter, and the folder with the installed package.
    Python(PathBuf, PathBuf),
}

/// `None` if Python cannot be tested.
pub(crate) fn python() -> Option<Tongue> {
    python::installed().map(|(interpreter, package)| Tongue::Python(interpreter, package))
}

pub(crate) struct Bench {
    pub(crate) folder: TempDir,
    pub(crate) replica: Replica,
    pub(crate) tongue: Tongue,
}

impl Bench {
    pub(crate) fn new(tongue: Tongue) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let replica = Replica::new(&folder.path().join("socket"));
        Self { folder, replica, tongue }
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    /// A workload without a journal: its state is lost when the workload ends.
    pub(crate) fn forgetful(&self) -> Puppet {
        self.puppet(&self.tongue, None)
    }

    /// A workload with a journal.
    pub(crate) fn workload(&self) -> Puppet {
        self.puppet(&self.tongue, Some(&self.journal()))
    }

    pub(crate) fn puppet(&self, tongue: &Tongue, journal: Option<&Path>) -> Puppet {
        let mut command = process(tongue, puppet::name(), "tests/clients/puppet.py");
        command.env(puppet::SOCKET, self.folder.path().join("socket"));
        if let Some(journal) = journal {
            command.env(puppet::JOURNAL, journal);
        }
        Puppet::new(command)
    }
}

/// A process that runs this test, or this script.
pub(crate) fn process(tongue: &Tongue, test: &str, script: &str) -> Command {
    match tongue {
        Tongue::Rust => {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args([test, "--exact", "--nocapture"]);
            command
        }
        Tongue::Python(interpreter, package) => {
            let mut command = Command::new(interpreter);
            command.arg(Path::new(ROOT).join(script)).env("PYTHONPATH", package);
            command
        }
    }
}

/// A workload whose handlers print each call, and end as commanded.
pub(crate) struct Puppet {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Puppet {
    pub(crate) fn new(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, lines: BufReader::new(output).lines() }
    }

    pub(crate) async fn tell(&mut self, command: &str) {
        self.input.write_all(format!("{command}\n").as_bytes()).await.unwrap();
    }

    /// The next line of the workload; `None` after its end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            let line = timeout(LIMIT, self.lines.next_line()).await.expect("the workload says something").unwrap()?;
            if let Some((_, said)) = line.split_once("@ ") {
                return Some(said.to_owned());
            }
        }
    }

    /// Asserts the next line of the workload.
    pub(crate) async fn says(&mut self, expected: &str) {
        assert_eq!(self.line().await.as_deref(), Some(expected));
    }

    pub(crate) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }

    /// Stops the workload, and returns the lines not read yet.
    pub(crate) async fn stop(mut self) -> Vec<String> {
        self.tell("stop").await;
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(line);
        }
        assert!(timeout(LIMIT, self.process.wait()).await.unwrap().unwrap().success());
        rest
    }
}
