//! Hooks as another user. Cases that need root are tested only when the tests run as root.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use allclear::hooks::{HookCommand, HookOutcome};
use nix::unistd::User;

use crate::workloads::bench::{Bench, end, task};

async fn run_as(bench: &Bench, user: &str, script: &str) -> HookOutcome {
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &HookCommand { user: Some(user.to_owned()), ..bench.shell(script) });
    end(&mut reports).await
}

#[tokio::test]
async fn a_hook_runs_with_the_ids_the_groups_and_the_home_of_its_user() {
    if !crate::left_out::is_root() {
        return;
    }
    let user = User::from_name("nobody").unwrap().expect("every system has nobody");
    let bench = Bench::new();
    let ids = "grep -E '^(Uid|Gid|Groups):' /proc/self/status; echo $HOME; cat >/dev/null";
    assert_eq!(run_as(&bench, "nobody", ids).await, HookOutcome::Done);
    let printed = bench.printed("stdout");
    let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
    let four = |id: u32| format!("{id} {id} {id} {id}");
    let lines: Vec<_> = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], format!("Uid: {}", four(uid)));
    assert_eq!(lines[1], format!("Gid: {}", four(gid)));
    assert_eq!(lines[2], format!("Groups: {gid}"));
    assert_eq!(lines[3], user.dir.to_str().unwrap());
}

#[tokio::test]
async fn a_hook_of_another_user_can_be_ended_and_cannot_read_the_spool() {
    if !crate::left_out::is_root() {
        return;
    }
    let bench = Bench::new();
    fs::set_permissions(bench.folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let ended = run_as(&bench, "nobody", "ls $BENCH/hooks 2>/dev/null && exit 3; id -u > $BENCH/who; exit 11").await;
    assert_eq!(ended, HookOutcome::NotApplicable);
    assert_eq!(bench.line("who").await, User::from_name("nobody").unwrap().unwrap().uid.to_string());

    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    task.deadline = crate::workloads::bench::within(std::time::Duration::from_secs(2));
    runner.run(&task, &HookCommand { user: Some("nobody".into()), ..bench.shell("exec sleep 60") });
    assert_eq!(end(&mut reports).await, HookOutcome::TimedOut);
}

#[tokio::test]
async fn a_user_that_does_not_exist_is_a_failure_that_says_so() {
    let ended = run_as(&Bench::new(), "no-such-user-here", "exit 0").await;
    assert_eq!(ended, HookOutcome::Failed("user no-such-user-here does not exist on this machine".into()));
}

#[tokio::test]
async fn without_root_another_user_is_a_failure_that_says_so() {
    if !crate::left_out::is_ordinary_user() {
        return;
    }
    let ended = run_as(&Bench::new(), "root", "exit 0").await;
    assert_eq!(ended, HookOutcome::Failed("cannot run as user root: the replica has to run as root".into()));
}
