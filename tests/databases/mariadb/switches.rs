//! Tests of this hook set alone, called as by a replica, beside servers to which clients write.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::super::hook::{BLOCKED, DONE, Ended, FAILED, Hook, UNDO};
use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, VMS, is_installed, until};
use super::super::writers::Writers;
use super::{MariaDb, asked_by_socket, by_socket, call, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_fit_target_it_is_blocked_with_the_reason_for_each_and_nothing_changes() {
    crate::left_out::long!();
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
    let (status, said) = call(&stage, 0, "failover", &[("PATIENCE_SECONDS", "5")]);
    stage.trio.thaw(1);
    assert_eq!(status, DONE, "{said}");
    assert_eq!(stage.primary(), 2);
    assert_eq!(call(&stage, 1, "restore", &[]).0, DONE);
    stage.all_is_there(writers);
}

/// Replicas which found no primary try again after a minute; here after an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_of_a_primary_that_was_away_for_a_moment_can_take_over_at_once() {
    crate::left_out::long!();
    if !is_installed::<MariaDb>() {
        return;
    }
    let mut stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    for place in [1, 2] {
        by_socket(&stage.trio, place, "STOP SLAVE; CHANGE MASTER TO MASTER_CONNECT_RETRY = 3600; START SLAVE");
    }
    stage.take_away(Kind::Reboot, 0);
    for place in [1, 2] {
        until("a replica that has found no primary", || match by_socket(&stage.trio, place, "SHOW SLAVE STATUS") {
            said if said.contains("\tConnecting\t") => Ok(()),
            said => Err(said),
        });
    }
    stage.give_back(Kind::Reboot, 0);
    Hook::until_done::<MariaDb>(&stage.trio, 0, "failover", &[("MAX_LAG_MS", "5000")]);
    assert_ne!(stage.primary(), 0);
    Hook::until_done::<MariaDb>(&stage.trio, 0, "restore", &[]);
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
    assert_eq!((status, stage.primary()), (FAILED, 0), "{said}");
    assert!(said.contains("did not get all of db-0 in time; taken back"), "{said}");
    let (status, said) = call(&stage, 0, "failover", &[("MAX_LAG_MS", "500")]);
    assert!(status == BLOCKED && said.contains("lags more than 500 ms"), "{said}");
    stage.all_is_there(writers);
}

/// The hook's patience is longer than the test's: a wait for the target would keep every client from writing again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_target_that_hangs_in_the_middle_is_not_waited_for_and_the_primary_takes_writes_again() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    for place in [1, 2] {
        by_socket(&stage.trio, place, "STOP SLAVE; CHANGE MASTER TO MASTER_DELAY = 2; START SLAVE");
    }
    let patient = [("MAX_LAG_MS", "30000"), ("CATCH_UP_MS", "2500"), ("PATIENCE_SECONDS", "600")];
    let told = [&patient[..], &[("ALLCLEAR_TIME_LEFT_MS", "300000")]].concat();
    let hook = Hook::begin::<MariaDb>(&stage.trio, 0, "failover", &told);
    until("writes to stop", || match asked_by_socket(&stage.trio, 0, "SELECT @@read_only") {
        Ok(said) if said.trim() == "1" => Ok(()),
        other => Err(format!("read_only is {other:?}")),
    });
    stage.trio.freeze(1);
    writers.go_on();
    let Ended { status, said } = hook.end();
    stage.trio.thaw(1);
    assert_eq!((status, stage.primary()), (FAILED, 0), "{said}");
    let cost = stage.all_is_there(writers);
    println!("writes stood still for {:?}", cost.gap);
}

/// The hook is killed after some milliseconds, before, in and after the time without writes; then the switch is
/// continued, undone, or left to `restore`.
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
        let hook = Hook::begin::<MariaDb>(&stage.trio, place, "failover", &[]);
        std::thread::sleep(Duration::from_millis(millis));
        hook.signal(Signal::SIGKILL);
        hook.end();
        match round % 3 {
            0 => Hook::until_done::<MariaDb>(&stage.trio, place, "failover", &[UNDO]),
            1 => Hook::until_done::<MariaDb>(&stage.trio, place, "failover", &[]),
            _ => {}
        }
        Hook::until_done::<MariaDb>(&stage.trio, place, "restore", &[]);
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
    assert!(status == FAILED && said.contains("has transactions that db-1 does not have"), "{status:?} {said}");
    stage.take_away(Kind::Redeploy, 0);
    MariaDb::boot(&stage.trio, 0);
    let (status, said) = call(&stage, 0, "restore", &[]);
    assert_eq!(status, DONE, "{said}");
    assert!(by_socket(&stage.trio, 0, "SHOW DATABASES").contains("known_to_this_one"));
}

/// After a crash outside an event nobody is writable, and after a switch an absent replica follows the former primary:
/// each report has the command that repairs this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn the_repair_after_a_crash_or_an_absence_is_told() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    let command =
        |place: usize| format!("run on its VM: allclear hook run --config FILE {}/mariadb/restore", VMS[place]);
    let tells = |place: usize, phase: &str, words: &str| {
        let (status, said) = call(&stage, place, phase, &[]);
        assert!(status != DONE && said.contains(words), "{place} {phase} {status:?} {said}");
    };
    stage.trio.kill(0);
    start(&stage.trio, 0);
    let to_lead = format!("nobody is writable; to make db-0 the primary, {}", command(0));
    for place in 0..VMS.len() {
        tells(place, "ready", &to_lead);
        tells(place, "check", &to_lead);
    }
    let (status, said) = call(&stage, 0, "restore", &[]);
    assert_eq!((status, stage.primary()), (DONE, 0), "{said}");
    writers.go_on();
    stage.trio.kill(2);
    let (status, said) = call(&stage, 0, "failover", &[]);
    assert_eq!((status, stage.primary()), (DONE, 1), "{said}");
    start(&stage.trio, 2);
    tells(2, "ready", &format!("db-2 does not follow db-1; {}", command(2)));
    tells(0, "check", &command(2));
    for place in [0, 2] {
        let (status, said) = call(&stage, place, "restore", &[]);
        assert_eq!(status, DONE, "{said}");
    }
    stage.all_is_there(writers);
}

/// The candidate may be writable when it is back, so nobody else is until an operator has decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_candidate_that_dies_at_its_promotion_leaves_nobody_writable_until_people_decide() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    Hook::killed_where::<MariaDb>(&stage.trio, 0, "failover", "before STOP SLAVE ''", &[]);
    stage.trio.kill(1);
    for (phase, more) in [("failover", &[][..]), ("failover", &[UNDO]), ("restore", &[])] {
        let (status, said) = call(&stage, 0, phase, more);
        assert!(status == BLOCKED && said.contains("db-1 may be writable, and does not answer"), "{status:?} {said}");
    }
    assert_eq!(MariaDb::primary(&stage.trio), None);
    std::fs::remove_file(stage.trio.vms[0].folder.join("state/mariadb.json")).unwrap();
    let (status, said) = call(&stage, 0, "restore", &[]);
    assert_eq!((status, stage.primary()), (DONE, 0), "{said}");
    start(&stage.trio, 1);
    let (status, said) = call(&stage, 1, "restore", &[]);
    assert_eq!(status, DONE, "{said}");
    stage.all_is_there(writers);
}
