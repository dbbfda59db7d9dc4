//! The members of a database that connect as session workloads: one process beside each replica. The file `primary`
//! in the shared folder begins with the name of the primary.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::process::ChildProcess;
use super::{VMS, folder, workloads_socket};
use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock;

/// The group in which the members register.
pub(super) const GROUP: &str = "kv";
const PRIMARY_WITHIN: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Capacity of the queue of unread lines; further lines are dropped.
const LINES: usize = 256;

pub(crate) struct MemberPrograms {
    primary: PathBuf,
    processes: Vec<(&'static str, ChildProcess)>,
    heard: mpsc::Receiver<MemberReport>,
}

/// A report about a VM, by a member or by another process beside the cluster.
pub(crate) struct MemberReport {
    pub(crate) at: Timestamp,
    pub(crate) who: &'static str,
    pub(crate) vm: String,
    pub(crate) what: String,
}

impl MemberPrograms {
    /// Starts the first member as the primary; the other members start when the first member has become the primary.
    pub(super) async fn start(program: &[String], folder: &Path) -> anyhow::Result<Self> {
        let shared = folder.join("shared");
        fs::create_dir(&shared)?;
        let (tell, heard) = mpsc::channel(LINES);
        let mut all = Self { primary: shared.join("primary"), processes: Vec::new(), heard };
        for vm in VMS {
            let (first, rest) = program.split_first().context("the program has no name")?;
            let mut command = Command::new(first);
            command.args(rest).arg(vm).arg(workloads_socket(folder, vm)).arg(&shared);
            command.env(folder::MARK, folder).stdout(Stdio::piped());
            let mut process = ChildProcess::new(folder.join(format!("{vm}.member.log")));
            let child = process.start(command).with_context(|| format!("{first} cannot be started"))?;
            if let Some(lines) = child.stdout.take() {
                tokio::spawn(listen(vm, lines, tell.clone()));
            }
            all.processes.push((vm, process));
            all.until_there_is_a_primary().await?;
        }
        Ok(all)
    }

    async fn until_there_is_a_primary(&mut self) -> anyhow::Result<()> {
        let limit = clock::monotonic().plus(PRIMARY_WITHIN);
        while self.primary()?.is_none() {
            self.all_run()?;
            if clock::monotonic() > limit {
                bail!("no member became primary in {} within {} s", self.primary.display(), PRIMARY_WITHIN.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    pub(crate) fn all_run(&mut self) -> anyhow::Result<()> {
        for (vm, process) in &mut self.processes {
            if let Some(status) = process.ended() {
                bail!("the database on {vm} ended unexpectedly: {status}\n{}", process.tail());
            }
        }
        Ok(())
    }

    /// Name of the primary, and the time of the file that names the primary.
    pub(crate) fn primary(&self) -> io::Result<Option<(String, Timestamp)>> {
        let mut file = match File::open(&self.primary) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut name = String::new();
        file.read_to_string(&mut name)?;
        let changed = file.metadata()?;
        let since = Timestamp(changed.ctime() * 1000 + changed.ctime_nsec() / 1_000_000);
        Ok(name.split_whitespace().next().map(|name| (name.to_owned(), since)))
    }

    /// Reports since the previous call.
    pub(crate) fn said(&mut self) -> Vec<MemberReport> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = &ChildProcess> {
        self.processes.iter().map(|(_, process)| process)
    }

    pub(super) fn processes_mut(&mut self) -> impl Iterator<Item = &mut ChildProcess> {
        self.processes.iter_mut().map(|(_, process)| process)
    }
}

async fn listen(vm: &str, lines: ChildStdout, tell: mpsc::Sender<MemberReport>) {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let what = line.strip_prefix(&format!("{vm}: ")).unwrap_or(&line).to_owned();
        // Lines are read even when the queue is full, so that the writer never waits.
        let _ = tell.try_send(MemberReport { at: clock::now(), who: "member", vm: vm.to_owned(), what });
    }
}
