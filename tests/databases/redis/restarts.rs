//! Restarts of servers in the middle of an operation, and members which took writes apart.

use std::fs;

use allclear::testbed::redis::ask;

use super::super::hook::{BLOCKED, Ended, FAILED, Hook};
use super::super::killed::{Watch, killed_at};
use super::super::stage::Stage;
use super::super::trio::{System, is_installed, until};
use super::super::writers::Writers;
use super::{Redis, Sentinel};

/// The primary has stepped down, no member took over, and the hook is gone.
fn stop_half_way(stage: &Stage<Redis>, primary: usize) {
    let point = "before MULTI; REPLICAOF NO ONE";
    let ended =
        until("a failover", || match Hook::killed_where::<Redis>(&stage.trio, primary, "failover", point, &[]) {
            Ended { status: BLOCKED, said } => Err(said),
            ended => Ok(ended),
        });
    assert!(killed_at(&ended).is_some(), "{ended:?}");
}

fn restart(stage: &Stage<Redis>, place: usize) {
    stage.trio.kill(place);
    Redis::boot(&stage.trio, place);
}

/// A killed server with an append-only file has forgotten its offsets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_restore_that_is_killed_at_any_point_leaves_one_primary_that_has_everything() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    let watch = Watch::begin::<Redis>(&stage.trio);
    for point in 1.. {
        let primary = stage.primary();
        stop_half_way(&stage, primary);
        restart(&stage, primary);
        let ended = Hook::killed::<Redis>(&stage.trio, primary, "restore", point, &[]);
        let Some(at) = killed_at(&ended) else {
            assert_eq!(ended.status, Some(0), "{ended:?}");
            assert!(point > 3, "a restore has {point} points");
            break;
        };
        println!("restore: {at}");
        restart(&stage, primary);
        Hook::until_done::<Redis>(&stage.trio, primary, "restore", &[]);
        writers.go_on();
    }
    watch.end();
    stage.all_is_there(writers);
}

/// Only a person can judge which of two histories is worth more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_primary_that_took_writes_apart_keeps_them_until_a_person_has_looked() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    // The primary died, another member was promoted, the old primary came back as a primary, and a client found the old
    // primary.
    trio.kill(0);
    Redis::promote(trio, &[1, 2]);
    let primary = stage.primary();
    for number in 0..50 {
        ask(trio, primary, &["SET", &format!("new:{number}"), "there"]).unwrap();
    }
    Redis::boot(trio, 0);
    until("a second primary", || ask(trio, 0, &["SET", "apart", "here"]).map_err(|error| error.to_string()));
    let ended = Hook::run::<Redis>(trio, 0, "restore", &[]);
    assert!(ended.status == FAILED && ended.said.contains("compare them"), "{ended:?}");
    assert_eq!(ask(trio, 0, &["GET", "apart"]).unwrap(), ["here"]);
    ask(trio, 0, &["FLUSHALL"]).unwrap();
    Hook::until_done::<Redis>(trio, 0, "restore", &[]);
    assert_eq!(ask(trio, 0, &["GET", "new:49"]).unwrap(), ["there"]);
}

/// Priorities set by a switch reach the file with the next rewrite, as by Sentinel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn priorities_that_a_killed_switch_left_are_put_back_in_the_files_too() {
    if !is_installed::<Sentinel>() {
        return;
    }
    let stage = Stage::<Sentinel>::bare().await;
    let trio = &stage.trio;
    let priority = |place: usize| ask(trio, place, &["CONFIG", "GET", "replica-priority"]).unwrap()[1].clone();
    let point = "after CONFIG SET replica-priority 0";
    Hook::killed_where::<Sentinel>(trio, 0, "failover", point, &[]);
    let left = [1, 2].into_iter().find(|place| priority(*place) == "0").expect("one that Sentinel may not choose");
    ask(trio, left, &["CONFIG", "REWRITE"]).unwrap();
    Hook::until_done::<Sentinel>(trio, 0, "restore", &[]);
    assert_eq!(priority(left), "100");
    let settings = fs::read_to_string(trio.vms[left].data().join("redis.conf")).unwrap();
    assert!(!settings.contains("replica-priority 0"), "{settings}");
}
