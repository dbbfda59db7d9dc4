//! Switches that go wrong: whoever dies when, nobody is told of a write that is lost, and one member is the primary.

use std::fs;
use std::time::Duration;

use allclear::databases::redis::{role, set_up};
use nix::sys::signal::Signal;

use super::super::hook::{BLOCKED, Hook, UNDO};
use super::super::stage::{Kind, Stage};
use super::super::trio::{System, VMS, is_installed, until};
use super::super::writers::Writers;
use super::{Redis, Sentinel};

/// Everything is there, and only one member takes writes.
fn is_whole<S: System>(stage: &Stage<S>, writers: Writers) {
    until("one primary", || {
        let roles: Vec<_> = (0..VMS.len()).map(|place| role(&stage.trio, place).map(|told| told[0].clone())).collect();
        let count = roles.iter().filter(|role| role.as_ref().is_ok_and(|role| role == "master")).count();
        if count == 1 { Ok(()) } else { Err(format!("{roles:?}")) }
    });
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_successor_nothing_is_switched_and_the_reason_is_told_for_each() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    stage.trio.freeze(2);
    let ended = Hook::run::<Redis>(&stage.trio, 0, "failover", &[("ALLCLEAR_AVOID_VMS", "db-1")]);
    stage.trio.thaw(2);
    let expected = "no member can take over: db-1 is on a VM to avoid; db-2 does not answer\n";
    assert_eq!((ended.status, &*ended.said), (BLOCKED, expected));
    assert_eq!(stage.primary(), 0);
    is_whole(&stage, writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_switch_that_is_stopped_at_any_moment_is_finished_or_taken_back_and_costs_no_write() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    for trial in 0..8 {
        let primary = stage.primary();
        let mut hook = Hook::begin::<Redis>(&stage.trio, primary, "failover", &[]);
        hook.until_it_acts();
        // The switch itself comes 1 to 2 s after it has begun.
        std::thread::sleep(Duration::from_millis(900 + 130 * trial));
        hook.signal(if trial % 2 == 0 { Signal::SIGKILL } else { Signal::SIGTERM });
        hook.end();
        Hook::until_done::<Redis>(&stage.trio, primary, "failover", &[UNDO]);
        writers.go_on();
        Hook::until_done::<Redis>(&stage.trio, primary, "restore", &[]);
    }
    is_whole(&stage, writers);
}

/// The moment in which nobody is a primary.
async fn is_stopped_half_way(then: &[(&str, &str)]) {
    if !is_installed::<Sentinel>() {
        return;
    }
    let stage = Stage::<Sentinel>::bare().await;
    let writers = Writers::start::<Sentinel>(&stage.trio);
    let hook = Hook::begin::<Sentinel>(&stage.trio, 0, "failover", &[]);
    until("a primary that steps down", || match role(&stage.trio, 0) {
        Ok(told) if told[0] == "slave" => Ok(()),
        told => Err(format!("{told:?}")),
    });
    hook.signal(Signal::SIGKILL);
    hook.end();
    Hook::until_done::<Sentinel>(&stage.trio, 0, "failover", then);
    writers.go_on();
    Hook::until_done::<Sentinel>(&stage.trio, 0, "restore", &[]);
    is_whole(&stage, writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_switch_by_sentinel_that_is_killed_half_way_is_taken_back_without_a_lost_write() {
    is_stopped_half_way(&[UNDO]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_switch_by_sentinel_that_is_killed_half_way_is_taken_up_again_without_a_lost_write() {
    is_stopped_half_way(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_successor_that_dies_in_the_middle_leaves_the_primary_where_it_was() {
    if !is_installed::<Redis>() {
        return;
    }
    let mut stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    let mut hook = Hook::begin::<Redis>(&stage.trio, 0, "failover", &[]);
    hook.until_it_acts();
    for place in [1, 2] {
        stage.take_away(Kind::Reboot, place);
    }
    assert_eq!(hook.end().status, BLOCKED);
    writers.go_on();
    for place in [1, 2] {
        Redis::boot(&stage.trio, place);
    }
    assert_eq!(stage.primary(), 0);
    is_whole(&stage, writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_primary_that_comes_back_empty_and_believes_that_it_is_one_gets_everything_and_gives_nothing() {
    if !is_installed::<Redis>() {
        return;
    }
    let mut stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    for phase in ["failover", "drain"] {
        Hook::until_done::<Redis>(&stage.trio, 0, phase, &[]);
    }
    stage.take_away(Kind::Redeploy, 0);
    set_up(&stage.trio, 0).unwrap();
    let settings = stage.trio.vms[0].data().join("redis.conf");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace("replicaof", "# ")).unwrap();
    Redis::boot(&stage.trio, 0);
    for phase in ["restore", "ready"] {
        Hook::until_done::<Redis>(&stage.trio, 0, phase, &[]);
    }
    assert_ne!(stage.primary(), 0);
    is_whole(&stage, writers);
}
