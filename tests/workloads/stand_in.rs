//! A replica in a process of its own, so that it can be killed.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use allclear::workloads;

use crate::bench::{Bench, LIMIT, open, shell, task, until};

const FOLDER: &str = "ALLCLEAR_TEST_FOLDER";
/// The command as JSON, a list.
const ARGV: &str = "ALLCLEAR_TEST_ARGV";

/// A replica that runs this script as a hook, then waits to be killed.
pub(crate) fn replica(bench: &Bench, script: &str) -> Child {
    replica_of(bench, &bench.shell(script))
}

pub(crate) fn replica_of(bench: &Bench, hook: &workloads::Command) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["stand_in::a_replica_can_be_a_process_of_its_own", "--exact", "--nocapture"])
        .env(FOLDER, bench.folder.path())
        .env(ARGV, serde_json::to_string(&hook.argv).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn kill(mut replica: Child) {
    replica.kill().unwrap();
    replica.wait().unwrap();
}

#[tokio::test]
async fn a_replica_can_be_a_process_of_its_own() {
    if let (Ok(folder), Ok(argv)) = (env::var(FOLDER), env::var(ARGV)) {
        return stand_in(Path::new(&folder), &argv).await;
    }
    let bench = Bench::new();
    let replica = replica(&bench, "true");
    until(|| bench.path("asked").exists()).await;
    kill(replica);
}

async fn stand_in(folder: &Path, argv: &str) {
    let (runner, _reports) = open(&folder.join("hooks"));
    fs::write(folder.join("asked"), "").unwrap();
    let argv = serde_json::from_str(argv).unwrap();
    runner.run(&task(), &workloads::Command { argv, ..shell(folder, "") });
    tokio::time::sleep(LIMIT).await;
}
