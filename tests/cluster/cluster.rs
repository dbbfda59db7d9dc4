//! Replicas as processes of the real program, and ways to ask, kill, freeze and start them again.

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

/// Far beyond what anything takes on a loaded machine; only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);
/// Between two looks at what is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) struct Cluster {
    pub(crate) cloud: Cloud,
    pub(crate) hooks: Hooks,
    /// Where the plan asks for them.
    pub(crate) links: Option<Links>,
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) replicas: Vec<Replica>,
    /// So many of them are named by every configuration.
    pub(crate) founders: usize,
    pub(crate) overrides: Vec<(String, &'static str)>,
    /// What makes a replica's surroundings differ, by place.
    pub(crate) environments: Vec<Vec<(&'static str, String)>>,
    /// What starts a replica, where it is not started as it is.
    pub(crate) launcher: Vec<String>,
    /// Let go of before the folder that they are in.
    pub(crate) disks: Vec<SmallDisk>,
    pub(crate) folder: TempDir,
    /// Given back when everything has ended.
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
    /// Starts a replica that does not run; its log goes to a file that is shown when the test fails.
    pub(crate) fn start(&mut self, place: usize) {
        let folder = self.folder.path();
        let log = File::options().create(true).append(true).open(folder.join(format!("{place}.log"))).unwrap();
        let program = &self.replicas[place].program;
        let mut command = Command::new(program);
        if let Some(namespaces) = &self.namespaces {
            // It gives way to the program, so the process is the replica's own.
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
            // as the unit of the package has it
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

    /// Of another version, from its next start on.
    pub(crate) fn replica_runs(&mut self, place: usize, program: &Path) {
        self.replicas[place].program = program.into();
    }

    /// Starts everybody but a newcomer.
    pub(crate) fn start_all(&mut self) {
        for place in 0..self.founders {
            self.start(place);
        }
    }

    /// Every replica that runs answers, follows a leader, and its endpoint works.
    pub(crate) async fn ready(&self) {
        for place in (0..self.replicas.len()).filter(|place| self.replicas[*place].child.is_some()) {
            self.until(place, "ready", |status| {
                status.quorum
                    && status.replicas.iter().all(|replica| replica.reachable && replica.metadata == "healthy")
            })
            .await;
            // Its page is in its network; without it, that it is registered is not looked at.
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

    /// How a replica ended by itself, told once.
    pub(crate) fn ended(&mut self, place: usize) -> Option<ExitStatus> {
        let ended = self.replicas[place].child.as_mut()?.try_wait().unwrap();
        if ended.is_some() {
            self.replicas[place].child = None;
        }
        ended
    }

    /// How a replica ends that is about to.
    pub(crate) fn waits_for_the_end(&mut self, place: usize) -> ExitStatus {
        self.replicas[place].child.take().expect("it runs").wait().unwrap()
    }

    /// Of the process, if it runs.
    pub(crate) fn pid(&self, place: usize) -> Option<i32> {
        self.replicas[place].child.as_ref().map(|child| child.id().cast_signed())
    }

    /// What a killed replica kept is gone; its name, its address and its configuration stay.
    pub(crate) fn lose_disk(&self, place: usize) {
        assert!(self.replicas[place].child.is_none(), "replica {place} still runs");
        std::fs::remove_dir_all(self.folder.path().join(format!("{place}.data"))).unwrap();
    }

    /// A second replica of the same name with a disk, an address and sockets of its own, which runs as soon as it is started.
    pub(crate) fn copy(&mut self, place: usize) -> usize {
        let copy = self.replicas.len();
        let file = |place: usize, name: &str| self.folder.path().join(format!("{place}.{name}")).display().to_string();
        let mut toml = std::fs::read_to_string(file(place, "toml")).unwrap();
        for name in ["data", "operator", "workloads"] {
            toml = toml.replace(&file(place, name), &file(copy, name));
        }
        let addresses = free_addresses(2);
        // That of the other replicas, and that of the page.
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

    /// The same, of what it kept of hooks alone.
    pub(crate) fn lose_spool(&self, place: usize) {
        assert!(self.replicas[place].child.is_none(), "replica {place} still runs");
        std::fs::remove_dir_all(self.folder.path().join(format!("{place}.data/hooks"))).unwrap();
    }

    /// Whatever hooks run, and what supervises them, as if their machines went down.
    pub(crate) fn kill_hooks(&self) {
        for pid in self.processes(|arguments| arguments.contains("supervise") || arguments.contains("hook.sh")) {
            // It may end with another one.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// The log of a replica, of all its runs; one that was never started has none.
    pub(crate) fn log(&self, place: usize) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{place}.log"))).unwrap_or_default()
    }

    /// SIGTERM, and how long it took to end.
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

    /// The JSON at a path of a replica's HTTP status, and the status code.
    pub(crate) async fn page(&self, place: usize, path: &str) -> (u16, String) {
        let client = allclear::http_client::plain().unwrap().build().unwrap();
        let answer = client.get(format!("{}{path}", self.replicas[place].page)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// What the program says when it asks a replica.
    pub(crate) fn says(&self, place: usize, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_allclear"))
            .args(arguments)
            .arg("--endpoint")
            .arg(&self.replicas[place].socket)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// The program at work on a replica, asked by its configuration.
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

    /// The file that a replica was started with.
    #[allow(dead_code, reason = "for other suites")]
    pub(crate) fn configuration(&self, place: usize) -> PathBuf {
        self.folder.path().join(format!("{place}.toml"))
    }

    /// What `member restore` says of a replica's data directory.
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

    /// Where workloads dial in at a replica.
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

    /// Those whose program is named so.
    pub(crate) fn processes_named(&self, name: &str) -> Vec<i32> {
        let begins_so = |arguments: &str| arguments.split('\0').next().is_some_and(|program| program.ends_with(name));
        self.processes(begins_so)
    }

    /// The processes of this cluster whose arguments are such; each names its folder.
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

    /// The place of the replica that leads, as one that runs sees it.
    pub(crate) async fn leader(&self, seen_by: usize) -> usize {
        let status = self.until(seen_by, "led by somebody", |status| status.quorum && status.leader.is_some()).await;
        self.place_of(&status.leader.unwrap())
    }

    /// Waits until a replica's status is as wanted.
    pub(crate) async fn until(&self, place: usize, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let (began, mut last) = (Instant::now(), None);
        while began.elapsed() < LIMIT {
            if let Some(status) = self.status(place).await {
                if holds(&status) {
                    return status;
                }
                last = Some(status);
            }
            sleep(LOOK_AGAIN).await;
        }
        panic!("replica {place} is not {what}; its status: {last:#?}");
    }

    /// Waits until a replica shows an event as wanted.
    pub(crate) async fn until_event(
        &self,
        place: usize,
        id: &str,
        what: &str,
        holds: impl Fn(&Event) -> bool,
    ) -> Event {
        let (began, mut last) = (Instant::now(), None);
        while began.elapsed() < LIMIT {
            if let Some(event) = self.event(place, id).await {
                if holds(&event) {
                    return event;
                }
                last = Some(event);
            }
            sleep(LOOK_AGAIN).await;
        }
        panic!("replica {place} does not show event {id} {what}; it shows: {last:#?}");
    }

    pub(crate) async fn until_stage(&self, place: usize, id: &str, stage: &str) -> Event {
        self.until_event(place, id, stage, |event| event.stage == stage).await
    }

    /// Waits until a replica shows that the platform took an approval. The event may have started by then.
    pub(crate) async fn until_approved(&self, place: usize, id: &str) -> Event {
        let is_accepted = |event: &Event| event.approvals.iter().any(|it| it.outcome.as_deref() == Some("accepted"));
        self.until_event(place, id, "approved", is_accepted).await
    }

    /// Waits until every replica has seen the event, so that any of them could approve it.
    pub(crate) async fn seen_by_all(&self, id: &str) {
        let count = self.replicas.len();
        self.until_event(0, id, "seen by all", |event| event.seen_by.len() == count).await;
    }

    /// Waits for something else.
    pub(crate) async fn until_true(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < LIMIT, "waited in vain: {what}");
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until every replica has it closed and all tell the same story: one that hears nobody for a moment tells
    /// what it alone knows.
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
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Lets every replica poll a few times more, so that whatever would still be posted is posted.
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
        // Hooks outlive their replicas on purpose; those of a test that failed wait for something that never comes.
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

/// What libfaketime leaves behind where a process that it was in was killed.
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
