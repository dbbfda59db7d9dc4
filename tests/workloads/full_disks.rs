//! A full disk: a hook that cannot be recorded is not run. The disk is full for one process only, which may write files
//! of no length.

use std::env;
use std::process::Command;

use allclear::hooks::Runner;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::workloads::bench::{ATTEMPT, Bench, end, open, task};

const FOLDER: &str = "ALLCLEAR_TEST_FULL";

fn make_room(length: Option<u64>) {
    let (_, most) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, length.unwrap_or(most), most).unwrap();
}

#[tokio::test]
async fn a_replica_whose_disk_is_full_can_be_a_process_of_its_own() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let (runner, mut reports): (Runner, _) = open(&std::path::Path::new(&folder).join("hooks"));
    let hook = crate::workloads::bench::shell(folder.as_ref(), "touch $BENCH/ran");
    for length in [Some(0), None] {
        make_room(length);
        runner.run(&task(), &hook);
        let ended = end(&mut reports).await;
        println!("@ {ended}, ran: {}", std::path::Path::new(&folder).join("ran").exists());
        runner.forget(ATTEMPT);
    }
}

#[test]
fn a_hook_that_cannot_be_remembered_is_blocked_and_runs_when_there_is_room() {
    let bench = Bench::new();
    // Otherwise the kernel ends a process that writes too much.
    let output = Command::new("/bin/sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(env::current_exe().unwrap())
        .args([crate::own_test!(a_replica_whose_disk_is_full_can_be_a_process_of_its_own), "--exact", "--nocapture"])
        .env(FOLDER, bench.folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = said.lines().filter_map(|line| line.split_once("@ ")).map(|(_, said)| said).collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(lines[0].contains("the hook was not started: cannot write") && lines[0].ends_with("ran: false"), "{said}");
    assert_eq!(lines[1], "done, ran: true");
}
