//! A replica in another process, for tests that kill the replica.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use allclear::hooks::session::Dispatch;
use allclear::hooks::{self, HookCall};

use crate::workloads::bench::{Bench, LIMIT, open, shell, task, until};
use crate::workloads::kind::session::serve;

const FOLDER: &str = "ALLCLEAR_TEST_FOLDER";
/// The command as a JSON list; empty for a session workload, which runs its hooks itself.
const ARGV: &str = "ALLCLEAR_TEST_ARGV";

/// A replica that runs this script as a hook, then waits to be killed.
pub(crate) fn replica(bench: &Bench, script: &str) -> Child {
    replica_of(bench, &bench.shell(script))
}

pub(crate) fn replica_of(bench: &Bench, hook: &hooks::HookCommand) -> Child {
    process(bench, &serde_json::to_string(&hook.argv).unwrap())
}

fn process(bench: &Bench, argv: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([crate::own_test!(a_replica_can_be_a_process_of_its_own), "--exact", "--nocapture"])
        .env(FOLDER, bench.folder.path())
        .env(ARGV, argv)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A replica for workloads to connect to; the replica assigns a step to the first workload.
pub(crate) fn served_replica(bench: &Bench) -> Child {
    process(bench, "[]")
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
    let argv: Vec<String> = serde_json::from_str(argv).unwrap();
    if argv.is_empty() {
        let (served, _reports) = serve(folder).await;
        let (task, is_left_over) = (task(), false);
        served.run(&task, &HookCall::Session(Dispatch { is_left_over, deadline: task.deadline.on_the_wall }));
        return tokio::time::sleep(LIMIT).await;
    }
    let (runner, _reports) = open(&folder.join("hooks"));
    fs::write(folder.join("asked"), "").unwrap();
    runner.run(&task(), &hooks::HookCommand { argv, ..shell(folder, "") });
    tokio::time::sleep(LIMIT).await;
}
