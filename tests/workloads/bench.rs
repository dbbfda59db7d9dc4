//! Each test's own spool, and the end of every process started in this spool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use allclear::core::model::document::{EventType, Source};
use allclear::core::model::id::{EventId, GroupName, VmName, WorkloadName};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Intent, Phase};
use allclear::hooks::{
    Deadline, Fence, HookCommand, HookEnvironment, HookOutcome, HookReport, HookTask, HookUpdate, Runner,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// No operation here takes this long; a test that waits longer has failed.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
pub(crate) const ATTEMPT: &str = "event/1:failover";

pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("allclear-hooks-").tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.path("hooks")
    }

    /// The folder of `ATTEMPT`.
    pub(crate) fn attempt(&self) -> PathBuf {
        self.spool().join("event%2F1%3Afailover")
    }

    pub(crate) fn open(&self) -> (Runner, Receiver<HookReport>) {
        open(&self.spool())
    }

    /// A shell command with `$BENCH` as the bench's folder.
    pub(crate) fn shell(&self, script: &str) -> HookCommand {
        shell(self.folder.path(), script)
    }

    /// Writes the script as an executable program.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A line written by a script, once the line is complete.
    pub(crate) async fn line(&self, name: &str) -> String {
        let path = self.path(name);
        until(|| fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'))).await;
        fs::read_to_string(&path).unwrap().trim().to_owned()
    }

    pub(crate) async fn process(&self, name: &str) -> i32 {
        self.line(name).await.parse().unwrap()
    }

    /// The stored output of `ATTEMPT`.
    pub(crate) fn printed(&self, stream: &str) -> String {
        fs::read_to_string(self.attempt().join(stream)).unwrap()
    }

    pub(crate) fn supervisor(&self) -> i32 {
        let mark = fs::read_to_string(self.attempt().join("mark.json")).unwrap();
        // The checksum follows on the next line.
        let mark: serde_json::Value = serde_json::from_str(mark.lines().next().unwrap()).unwrap();
        mark["supervisor"]["pid"].as_i64().unwrap().try_into().unwrap()
    }
}

impl Drop for Bench {
    /// Every process started here names the folder in its arguments or its environment.
    fn drop(&mut self) {
        for pid in processes(self.folder.path().to_str().unwrap()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Processes other than this process that name a folder in their arguments or their environment.
pub(crate) fn processes(folder: &str) -> Vec<i32> {
    let name = folder.as_bytes();
    let names_it = |pid: &i32| {
        ["cmdline", "environ"].iter().any(|file| {
            let text = fs::read(format!("/proc/{pid}/{file}"));
            text.is_ok_and(|text| text.windows(name.len()).any(|part| part == name))
        })
    };
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid > 1 && pid.unsigned_abs() != std::process::id()).filter(names_it).collect()
}

pub(crate) fn open(spool: &Path) -> (Runner, Receiver<HookReport>) {
    Runner::open(spool, env!("CARGO_BIN_EXE_allclear").into(), HookEnvironment::default()).unwrap()
}

pub(crate) fn shell(folder: &Path, script: &str) -> HookCommand {
    HookCommand {
        argv: ["/bin/sh", "-c", script].map(str::to_owned).into(),
        env: BTreeMap::from([("BENCH".to_owned(), folder.to_str().unwrap().to_owned())]),
        shown: BTreeSet::from(["BENCH".to_owned()]),
        ..HookCommand::default()
    }
}

pub(crate) fn task() -> HookTask {
    let vms = |names: &[&str]| names.iter().map(|name| VmName::new(name)).collect();
    HookTask {
        attempt: ATTEMPT.to_owned(),
        step: "A1-b2@1500/db-0/postgres/failover/0".to_owned(),
        fence: Fence { term: 3, sequence: 17 },
        event_id: EventId::new("A1-b2"),
        event_type: EventType::Redeploy,
        event_source: Source::User,
        resources: vms(&["db-0", "other-7"]),
        phase: Phase::Failover,
        place: 0,
        workload: WorkloadName("postgres".to_owned()),
        group: Some(GroupName("orders-db".to_owned())),
        vm: VmName::new("db-0"),
        intent: Intent::Run,
        deadline: within(LIMIT * 2),
        avoid: vms(&["db-0"]),
        prefer: vms(&["db-2", "db-1"]),
        traceparent: None,
        drill: None,
    }
}

pub(crate) fn within(span: Duration) -> Deadline {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Deadline::within(span, Timestamp::default().plus(since_1970))
}

pub(crate) async fn next(reports: &mut Receiver<HookReport>) -> HookUpdate {
    let report = timeout(LIMIT, reports.recv()).await.expect("a report in time").expect("a runner that reports");
    assert_eq!(report.attempt, ATTEMPT);
    report.news
}

/// The next reported end.
pub(crate) async fn end(reports: &mut Receiver<HookReport>) -> HookOutcome {
    loop {
        if let HookUpdate::Ended(ended) = next(reports).await {
            return ended;
        }
    }
}

/// Runs a script on a bench of its own.
pub(crate) async fn outcome(script: &str) -> HookOutcome {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell(script));
    end(&mut reports).await
}

pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let waited = timeout(LIMIT, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("what is waited for comes true in time");
}

pub(crate) fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}
