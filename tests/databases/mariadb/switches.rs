//! What only this hook set does, called as a replica calls it, beside servers that clients write to.

use std::process::{Child, Output, Stdio};
use std::time::Duration;

use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, VMS, is_installed, until};
use super::super::writers::Writers;
use super::{MariaDb, by_socket};

const BLOCKED: i32 = 75;
const NOT_APPLICABLE: i32 = 11;
const NOT_DONE: i32 = 12;

/// A hook of this VM, in an event of this VM.
fn begin(stage: &Stage<MariaDb>, place: usize, hook: &str, more: &[(&str, &str)]) -> Child {
    let trio = &stage.trio;
    let program = trio.vms[place].folder.join("hooks/mariadb.py").display().to_string();
    let mut command = trio.command(place, "python3").unwrap();
    command.args([&*program, hook]).envs(MariaDb::settings(trio, place));
    command.envs([("ALLCLEAR_VM", VMS[place]), ("ALLCLEAR_EVENT_RESOURCES", VMS[place])]);
    command.envs(more.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Its exit status, and what it said.
fn call(stage: &Stage<MariaDb>, place: usize, hook: &str, more: &[(&str, &str)]) -> (i32, String) {
    told(begin(stage, place, hook, more).wait_with_output().unwrap())
}

fn told(output: Output) -> (i32, String) {
    let Output { status, stdout, stderr } = output;
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_fit_target_it_is_blocked_with_the_reason_for_each_and_nothing_changes() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    by_socket(&stage.trio, 2, "STOP SLAVE SQL_THREAD");
    let (status, said) = call(&stage, 0, "failover", &[("ALLCLEAR_AVOID_VMS", "db-1")]);
    assert_eq!(status, BLOCKED, "{said}");
    assert!(
        said.contains("db-1: is on a VM to avoid") && said.contains("db-2: its replication does not run"),
        "{said}"
    );
    assert_eq!(stage.primary(), 0);
    by_socket(&stage.trio, 2, "START SLAVE");
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_target_that_does_not_answer_is_passed_over() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    stage.trio.freeze(1);
    let (status, said) = call(&stage, 0, "failover", &[("PATIENCE_SECONDS", "5"), ("CATCH_UP_MS", "10000")]);
    stage.trio.thaw(1);
    assert_eq!(status, 0, "{said}");
    assert_eq!(stage.primary(), 2);
    assert_eq!(call(&stage, 1, "restore", &[]).0, 0);
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn what_does_not_catch_up_in_time_is_taken_back() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    for place in [1, 2] {
        by_socket(&stage.trio, place, "STOP SLAVE; CHANGE MASTER TO MASTER_DELAY = 2; START SLAVE");
    }
    let (status, said) = call(&stage, 0, "failover", &[("MAX_LAG_MS", "30000"), ("CATCH_UP_MS", "50")]);
    assert_eq!((status, stage.primary()), (BLOCKED, 0), "{said}");
    let (status, said) = call(&stage, 0, "failover", &[]);
    assert!(status == BLOCKED && said.contains("lags more than 500 ms"), "{said}");
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn called_again_it_has_no_second_effect() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let confirm = [("ALLCLEAR_INTENT", "confirm")];
    let undo = [("ALLCLEAR_INTENT", "undo")];
    let writers = Writers::start::<MariaDb>(&stage.trio);
    assert_eq!(call(&stage, 0, "failover", &confirm).0, NOT_DONE);
    assert_eq!(call(&stage, 1, "failover", &[]).0, NOT_APPLICABLE);
    assert_eq!(call(&stage, 0, "failover", &[("ALLCLEAR_PREFER_VMS", "db-2 db-1")]).0, 0);
    assert_eq!(call(&stage, 0, "failover", &[]).0, NOT_APPLICABLE);
    assert_eq!((call(&stage, 0, "failover", &confirm).0, call(&stage, 0, "failover", &undo).0), (0, 0));
    assert_eq!(stage.primary(), 2);
    stage.all_is_there(writers);
}

/// Killed after so many milliseconds, which fall before, into and after the time without writes; then gone on with,
/// taken back, or left to `restore`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn killed_at_any_point_it_leaves_one_primary_and_every_acknowledged_write() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    for (round, millis) in (40..400).step_by(30).enumerate() {
        let place = stage.primary();
        let mut hook = begin(&stage, place, "failover", &[]);
        std::thread::sleep(Duration::from_millis(millis));
        hook.kill().unwrap();
        hook.wait().unwrap();
        match round % 3 {
            0 => drop(call(&stage, place, "failover", &[("ALLCLEAR_INTENT", "undo")])),
            1 => drop(call(&stage, place, "failover", &[])),
            _ => {}
        }
        until("a hook that puts it back", || match call(&stage, place, "restore", &[]) {
            (0, _) => Ok(()),
            (_, said) => Err(said),
        });
        let open = (0..VMS.len()).filter(|place| by_socket(&stage.trio, *place, "SELECT @@read_only").trim() == "0");
        assert_eq!(open.count(), 1);
        writers.go_on();
    }
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn transactions_that_the_primary_does_not_have_are_left_to_people() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let mut stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, "SET GLOBAL read_only = 1");
    by_socket(&stage.trio, 1, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
    by_socket(&stage.trio, 1, "CREATE DATABASE known_to_this_one");
    by_socket(&stage.trio, 0, "CREATE DATABASE known_to_that_one; CREATE DATABASE and_so_is_this");
    let (status, said) = call(&stage, 0, "restore", &[("ALLCLEAR_TIME_LEFT_MS", "9000")]);
    assert!(status == 1 && said.contains("has transactions that db-1 does not have"), "{status} {said}");
    stage.take_away(Kind::Redeploy, 0);
    MariaDb::boot(&stage.trio, 0);
    let (status, said) = call(&stage, 0, "restore", &[]);
    assert_eq!(status, 0, "{said}");
    assert!(by_socket(&stage.trio, 0, "SHOW DATABASES").contains("known_to_this_one"));
}
