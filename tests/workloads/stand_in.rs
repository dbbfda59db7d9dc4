//! A replica in a process of its own, so that it can be killed.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::bench::{Bench, LIMIT, open, shell, task, until};

const FOLDER: &str = "ALLCLEAR_TEST_FOLDER";
const SCRIPT: &str = "ALLCLEAR_TEST_SCRIPT";

/// A replica that runs this script as a hook, then waits to be killed.
pub(crate) fn replica(bench: &Bench, script: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["stand_in::a_replica_can_be_a_process_of_its_own", "--exact", "--nocapture"])
        .env(FOLDER, bench.folder.path())
        .env(SCRIPT, script)
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
    if let (Ok(folder), Ok(script)) = (env::var(FOLDER), env::var(SCRIPT)) {
        return stand_in(Path::new(&folder), &script).await;
    }
    let bench = Bench::new();
    let replica = replica(&bench, "true");
    until(|| bench.path("asked").exists()).await;
    kill(replica);
}

async fn stand_in(folder: &Path, script: &str) {
    let (runner, _reports) = open(&folder.join("hooks"));
    fs::write(folder.join("asked"), "").unwrap();
    runner.run(&task(), &shell(folder, script));
    tokio::time::sleep(LIMIT).await;
}
