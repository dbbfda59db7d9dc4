//! Replicas as processes of the real program, and functions to query, kill, freeze and restart replicas.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use allclear::grpc::client::OperatorConnection;
use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::cloud::Cloud;
use super::disks::SmallDisk;
use super::links::Links;
use super::namespaces::Namespaces;
pub(crate) use super::plan::Plan;
use super::plan::free_addresses;
use super::workload::Hooks;
use crate::machine_share::Share;

/// Far beyond the duration of any operation on a loaded machine; only a failing test waits this long.
pub(crate) const OPERATOR: &str = "nightshift";
const LIMIT: Duration = Duration::from_mins(2);
/// The pause between two checks of a condition grows with the wait: a check costs the replica several milliseconds of
/// processor time, and a tenth more delay costs nothing.
fn pause(began: Instant) -> Duration {
    (began.elapsed() / 10).clamp(Duration::from_millis(20), Duration::from_millis(100))
}

pub(crate) struct Cluster {
    pub(crate) cloud: Cloud,
    pub(crate) hooks: Hooks,
    /// `Some` where the plan asks for links.
    pub(crate) links: Option<Links>,
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) replicas: Vec<Replica>,
    /// Number of replicas that every configuration names.
    pub(crate) founders: usize,
    pub(crate) overrides: Vec<(String, &'static str)>,
    /// Additional environment variables of each replica, by place.
    pub(crate) environments: Vec<Vec<(&'static str, String)>>,
    /// The command that starts a replica; empty if the program is started directly.
    pub(crate) launcher: Vec<String>,
    /// Dropped before the folder of the disks.
    pub(crate) disks: Vec<SmallDisk>,
    pub(crate) folder: TempDir,
    /// Released when everything has ended.
    pub(crate) _share: Share,
}

pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) page: String,
    pub(crate) child: Option<Child>,
}

impl Cluster {
    /// Starts a stopped replica; the log goes to a file, printed when the test fails.
    pub(crate) fn start(&mut self, place: usize) {
        let folder = self.folder.path();
        let log = File::options().create(true).append(true).open(folder.join(format!("{place}.log"))).unwrap();
        let program = &self.replicas[place].program;
        let mut command = Command::new(program);
        if let Some(namespaces) = &self.namespaces {
            // `ip` is replaced by the program, so the process is the replica's own.
            command = Command::new("ip");
            command.args(["netns", "exec", &namespaces.of(place)]).arg(program);
        }
        if let Some((first, rest)) = self.launcher.split_first() {
            command = Command::new(first);
            command.args(rest).arg(program);
        }
        let child = command
            .args(["run", "--config"])
            .arg(folder.join(format!("{place}.toml")))
            .env("ALLCLEAR_LOG", "info,allclear=debug,openraft=warn")
            // as in the unit of the package
            .envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")])
            .envs(self.overrides.iter().map(|(name, value)| (name, value)))
            .envs(self.environments.get(place).into_iter().flatten().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let earlier = self.replicas[place].child.replace(child);
        assert!(earlier.is_none(), "replica {place} runs already");
    }

    /// Sets another version of the program, used from the replica's next start on.
    pub(crate) fn replica_runs(&mut self, place: usize, program: &Path) {
        self.replicas[place].program = program.into();
    }

    /// Starts every founder, and no newcomer.
    pub(crate) fn start_all(&mut self) {
        for place in 0..self.founders {
            self.start(place);
        }
    }

    /// Waits until every running replica answers and follows a leader, and the replica's endpoint works.
    pub(crate) async fn ready(&self) {
        for place in (0..self.replicas.len()).filter(|place| self.replicas[*place].child.is_some()) {
            self.until(place, "ready", |status| {
                status.quorum
                    && status.replicas.iter().all(|replica| replica.reachable && replica.metadata == "healthy")
            })
            .await;
            // In a namespace the replica's page is out of the test's network, so the registration is not checked.
            if self.namespaces.is_none() {
                let is_registered = async || self.page(place, "/readyz").await.0 == 200;
                self.until_true("a registered replica", is_registered).await;
            }
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, place: usize) {
        let mut child = self.replicas[place].child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
        clear_clock_away(child.id());
    }

    /// Exit status of a replica that ended by itself, returned once.
    pub(crate) fn ended(&mut self, place: usize) -> Option<ExitStatus> {
        let ended = self.replicas[place].child.as_mut()?.try_wait().unwrap();
        if ended.is_some() {
            self.replicas[place].child = None;
        }
        ended
    }

    /// Waits for the exit of a replica that is about to end.
    pub(crate) fn waits_for_the_end(&mut self, place: usize) -> ExitStatus {
        self.replicas[place].child.take().expect("it runs").wait().unwrap()
    }

    /// Process id of a running replica.
    pub(crate) fn pid(&self, place: usize) -> Option<i32> {
        self.replicas[place].child.as_ref().map(|child| child.id().cast_signed())
    }

    /// Deletes the data of a killed replica; name, address and configuration stay.
    pub(crate) fn lose_disk(&self, place: usize) {
        assert!(self.replicas[place].child.is_none(), "replica {place} still runs");
        std::fs::remove_dir_all(self.folder.path().join(format!("{place}.data"))).unwrap();
    }

    /// Adds a second replica of the same name with a separate disk, address and sockets, which runs once started.
    pub(crate) fn copy(&mut self, place: usize) -> usize {
        let copy = self.replicas.len();
        let file = |place: usize, name: &str| self.folder.path().join(format!("{place}.{name}")).display().to_string();
        let mut toml = std::fs::read_to_string(file(place, "toml")).unwrap();
        for name in ["data", "operator", "workloads"] {
            toml = toml.replace(&file(place, name), &file(copy, name));
        }
        let addresses = free_addresses(2);
        // The address for other replicas, and the address of the page.
        let mut own = addresses.iter();
        let lines = toml.lines().map(|line| match line.starts_with("listen = ").then(|| own.next()).flatten() {
            Some(address) => format!("listen = {address:?}\n"),
            None => format!("{line}\n"),
        });
        std::fs::write(file(copy, "toml"), lines.collect::<String>()).unwrap();
        let Replica { name, program, .. } = &self.replicas[place];
        let (name, program, socket) = (name.clone(), program.clone(), file(copy, "operator").into());
        let page = format!("http://{}", addresses[1]);
        self.replicas.push(Replica { name, program, socket, page, child: None });
        copy
    }

    /// Deletes only the hook data of a killed replica.
    pub(crate) fn lose_spool(&self, place: usize) {
        assert!(self.replicas[place].child.is_none(), "replica {place} still runs");
        std::fs::remove_dir_all(self.folder.path().join(format!("{place}.data/hooks"))).unwrap();
    }

    /// Kills all running hooks and their supervisors, as if the machines went down.
    pub(crate) fn kill_hooks(&self) {
        for pid in self.processes(|arguments| arguments.contains("supervise") || arguments.contains("hook.sh")) {
            // The process may end together with another process.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// The log of a replica, of all its runs; empty if the replica was never started.
    pub(crate) fn log(&self, place: usize) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{place}.log"))).unwrap_or_default()
    }

    /// Sends SIGTERM, and returns the time until the exit.
    pub(crate) fn stop(&mut self, place: usize) -> (Duration, ExitStatus) {
        let mut child = self.replicas[place].child.take().expect("it runs");
        let began = std::time::Instant::now();
        signal(&child, Signal::SIGTERM);
        let status = child.wait().unwrap();
        (began.elapsed(), status)
    }

    pub(crate) fn freeze(&self, place: usize) {
        signal(self.replicas[place].child.as_ref().unwrap(), Signal::SIGSTOP);
    }

    pub(crate) fn thaw(&self, place: usize) {
        signal(self.replicas[place].child.as_ref().unwrap(), Signal::SIGCONT);
    }

    /// Status code and body of a path of a replica's HTTP page.
    pub(crate) async fn page(&self, place: usize, path: &str) -> (u16, String) {
        let client = allclear::http_client::plain().unwrap().build().unwrap();
        let answer = client.get(format!("{}{path}", self.replicas[place].page)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Runs a command of the program against a replica, as the user `OPERATOR`; returns exit code, standard output and
    /// standard error.
    pub(crate) fn says(&self, place: usize, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_allclear"))
            .args(arguments)
            .env_remove("SUDO_USER")
            .env("LOGNAME", OPERATOR)
            .arg("--endpoint")
            .arg(&self.replicas[place].socket)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// Starts a command of the program for a replica, with the replica's configuration.
    pub(crate) fn asks(&self, place: usize, command: &str, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_allclear"))
            .args([command, "--config"])
            .arg(self.folder.path().join(format!("{place}.toml")))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The configuration file with which a replica was started.
    #[allow(dead_code, reason = "for other suites")]
    pub(crate) fn configuration(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("{place}.toml"))
    }

    /// Runs `member restore` on a replica's data directory; returns exit code and standard error.
    pub(crate) fn restore(&self, place: usize, flags: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_allclear"))
            .args(["member", "restore", "--config"])
            .arg(self.folder.path().join(format!("{place}.toml")))
            .args(flags)
            .envs(self.overrides.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// The socket at which session workloads connect to a replica.
    pub(crate) fn door(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("{place}.workloads"))
    }

    pub(crate) fn place_of(&self, name: &str) -> usize {
        self.replicas.iter().position(|replica| replica.name == name).unwrap()
    }

    /// The processes that supervise hooks of this cluster now.
    pub(crate) fn supervisors(&self) -> Vec<i32> {
        self.processes(|arguments| arguments.contains("supervise"))
    }

    /// The processes of this cluster by name of the program.
    pub(crate) fn processes_named(&self, name: &str) -> Vec<i32> {
        let begins_so = |arguments: &str| arguments.split('\0').next().is_some_and(|program| program.ends_with(name));
        self.processes(begins_so)
    }

    /// The processes of this cluster with matching arguments; each process names the cluster's folder.
    fn processes(&self, such: impl Fn(&str) -> bool) -> Vec<i32> {
        let folder = self.folder.path().display().to_string();
        let is_one = |pid: &i32| {
            let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.contains(&folder) && such(&arguments)
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(is_one).collect()
    }

    pub(crate) async fn status(&self, place: usize) -> Option<Status> {
        OperatorConnection::connect(&self.replicas[place].socket).await.ok()?.status().await.ok()
    }

    pub(crate) async fn event(&self, place: usize, id: &str) -> Option<Event> {
        OperatorConnection::connect(&self.replicas[place].socket).await.ok()?.event(id).await.ok()
    }

    /// The place of the leader, as reported by a running replica.
    pub(crate) async fn leader(&self, seen_by: usize) -> usize {
        let status = self.until(seen_by, "led by somebody", |status| status.quorum && status.leader.is_some()).await;
        self.place_of(&status.leader.unwrap())
    }

    /// Waits until a replica's status is as wanted.
    pub(crate) async fn until(&self, place: usize, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let seen = self.until_status(place, &holds).await;
        seen.unwrap_or_else(|last| panic!("replica {place} is not {what}; its status: {last:#?}"))
    }

    /// Waits until a replica shows an event as wanted.
    pub(crate) async fn until_event(
        &self,
        place: usize,
        id: &str,
        what: &str,
        holds: impl Fn(&Event) -> bool,
    ) -> Event {
        let seen = self.until_shown(place, id, &holds).await;
        seen.unwrap_or_else(|last| panic!("replica {place} does not show event {id} {what}; it shows: {last:#?}"))
    }

    /// These two are not generic: the read would be compiled for each condition.
    async fn until_status(&self, place: usize, holds: &dyn Fn(&Status) -> bool) -> Result<Status, Option<Status>> {
        let read = async |replica: &mut OperatorConnection| replica.status().await.ok();
        self.until_read(place, read, holds).await
    }

    async fn until_shown(
        &self,
        place: usize,
        id: &str,
        holds: &dyn Fn(&Event) -> bool,
    ) -> Result<Event, Option<Event>> {
        let read = async |replica: &mut OperatorConnection| replica.event(id).await.ok();
        self.until_read(place, read, holds).await
    }

    /// Reads over one connection until `holds` returns true, or returns the last answer after the time limit.
    async fn until_read<T>(
        &self,
        place: usize,
        read: impl AsyncFn(&mut OperatorConnection) -> Option<T>,
        holds: &dyn Fn(&T) -> bool,
    ) -> Result<T, Option<T>> {
        let (began, mut last, mut connection) = (Instant::now(), None, None);
        while began.elapsed() < LIMIT {
            if connection.is_none() {
                connection = OperatorConnection::connect(&self.replicas[place].socket).await.ok();
            }
            let answer = if let Some(replica) = &mut connection { read(replica).await } else { None };
            match answer {
                Some(answer) if holds(&answer) => return Ok(answer),
                Some(answer) => last = Some(answer),
                None => connection = None,
            }
            sleep(pause(began)).await;
        }
        Err(last)
    }

    pub(crate) async fn until_stage(&self, place: usize, id: &str, stage: &str) -> Event {
        self.until_event(place, id, stage, |event| event.stage == stage).await
    }

    /// Waits until a replica reports an accepted approval. The event may have started by then.
    pub(crate) async fn until_approved(&self, place: usize, id: &str) -> Event {
        let is_accepted = |event: &Event| event.approvals.iter().any(|it| it.outcome.as_deref() == Some("accepted"));
        self.until_event(place, id, "approved", is_accepted).await
    }

    /// Waits until every replica has seen the event, so that any replica could approve the event.
    pub(crate) async fn seen_by_all(&self, id: &str) {
        let count = self.replicas.len();
        self.until_event(0, id, "seen by all", |event| event.seen_by.len() == count).await;
    }

    /// Waits until `holds` returns true.
    pub(crate) async fn until_true(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < LIMIT, "waited in vain: {what}");
            sleep(pause(began)).await;
        }
    }

    /// Waits until every replica reports the event as closed, with equal content: a replica that is isolated for a
    /// moment reports only its own knowledge.
    pub(crate) async fn closed_everywhere(&self, id: &str) -> Event {
        let began = Instant::now();
        loop {
            let mut stories = Vec::new();
            for place in 0..self.replicas.len() {
                stories.push(self.until_stage(place, id, "closed").await);
            }
            if stories.iter().all(|story| *story == stories[0]) {
                return stories.swap_remove(0);
            }
            assert!(began.elapsed() < LIMIT, "the replicas tell different stories: {stories:#?}");
            sleep(pause(began)).await;
        }
    }

    /// Lets every replica poll a few times more, so that any pending approval is posted.
    pub(crate) async fn a_few_polls_later(&self) {
        let mut before = Vec::new();
        for replica in self.replicas.iter().filter(|replica| replica.child.is_some()) {
            before.push((&replica.name, self.cloud.polls(&replica.name).await));
        }
        for (name, before) in before {
            self.until_true("three more polls", async || self.cloud.polls(name).await >= before + 3).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for replica in &mut self.replicas {
            if let Some(mut child) = replica.child.take() {
                let _ = child.kill();
                let _ = child.wait();
                clear_clock_away(child.id());
            }
        }
        // Hooks outlive their replicas on purpose; hooks of a failed test would wait forever.
        for pid in self.supervisors().into_iter().chain(self.processes(|_| true)) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        if std::thread::panicking() {
            for place in 0..self.replicas.len() {
                let log = self.log(place);
                let lines: Vec<_> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(60)..].join("\n");
                println!("---- the end of the log of {}\n{tail}", self.replicas[place].name);
            }
        }
    }
}

/// Removes the files that libfaketime leaves behind for a killed process.
fn clear_clock_away(pid: u32) {
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
        let _ = std::fs::remove_file(format!("/dev/shm/{name}{pid}"));
    }
}

fn signal(child: &Child, signal: Signal) {
    signal_process(child.id().cast_signed(), signal);
}

pub(crate) fn signal_process(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}
