//! A scripted replica, a workload that is a process, and what they say to each other.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command as Blocking, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::puppet;
use crate::replica::Replica;

/// Nothing takes as long, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// In which language the workload is written.
#[derive(Clone)]
pub(crate) enum Tongue {
    Rust,
    /// The interpreter, and the folder with the installed package.
    Python(PathBuf, PathBuf),
}

/// Nothing where the packages are missing that `.ci/run` installs; there, `ALLCLEAR_PYTHON` says that they must not be.
pub(crate) fn python() -> Option<Tongue> {
    static INSTALLED: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let (interpreter, package) = INSTALLED.get_or_init(install).as_ref()?;
    Some(Tongue::Python(interpreter.clone(), package.clone()))
}

/// Installs the package as it is in the source, without a network.
fn install() -> Option<(PathBuf, PathBuf)> {
    let wanted = env::var_os("ALLCLEAR_PYTHON").map(PathBuf::from);
    let interpreter = wanted.clone().unwrap_or_else(|| Path::new(ROOT).join("target/python/bin/python3"));
    let has_all = ["-c", "import grpc, google.protobuf, grpc_tools, hatchling"];
    let found = Blocking::new(&interpreter).args(has_all).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        assert!(wanted.is_none(), "{} lacks packages: see .ci/run", interpreter.display());
        println!("skipped: target/python is missing or lacks packages; `.ci/run` says how it is made");
        return None;
    }
    let package = folder();
    let installed = Blocking::new(&interpreter)
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"])
        .arg(&package)
        .arg(Path::new(ROOT).join("deploy/clients/python"))
        .output()
        .unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    Some((interpreter, package))
}

/// One for each process; those of processes that are gone are cleared away.
fn folder() -> PathBuf {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(parent).unwrap().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("python-"));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // another process may clear it away, too
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    parent.join(format!("python-{}", std::process::id()))
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

    /// A workload that forgets when it ends.
    pub(crate) fn forgetful(&self) -> Puppet {
        self.puppet(&self.tongue, None)
    }

    /// A workload with a journal.
    pub(crate) fn workload(&self) -> Puppet {
        self.puppet(&self.tongue, Some(&self.journal()))
    }

    pub(crate) fn puppet(&self, tongue: &Tongue, journal: Option<&Path>) -> Puppet {
        let mut command = process(tongue, puppet::NAME, "tests/clients/puppet.py");
        command.env(puppet::SOCKET, self.folder.path().join("socket"));
        if let Some(journal) = journal {
            command.env(puppet::JOURNAL, journal);
        }
        Puppet::new(command)
    }
}

/// A process that does what this test does, or this script.
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

/// A workload whose handlers say that they were called, and do what they are told.
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

    /// What it says next; nothing when it has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            let line = timeout(LIMIT, self.lines.next_line()).await.expect("the workload says something").unwrap()?;
            if let Some((_, said)) = line.split_once("@ ") {
                return Some(said.to_owned());
            }
        }
    }

    /// What it says next, which is this.
    pub(crate) async fn says(&mut self, expected: &str) {
        assert_eq!(self.line().await.as_deref(), Some(expected));
    }

    pub(crate) async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }

    /// Stops it; what it said and nobody has read yet.
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
