//! Switches with failures: whichever process dies at whichever time, no acknowledged write is lost, and one member is
//! the primary.

use std::fs;
use std::time::Duration;

use allclear::testbed::redis::{ask, role, set_up};
use nix::sys::signal::Signal;

use super::super::hook::{BLOCKED, DONE, Ended, FAILED, Hook, UNDO};
use super::super::killed::Watch;
use super::super::stage::{Kind, Stage};
use super::super::trio::{System, VMS, is_installed, until};
use super::super::writers::Writers;
use super::{Redis, Sentinel};

/// Asserts all rows on every member, and writes on only one member.
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
    crate::left_out::long!();
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    stage.trio.freeze(2);
    let ended = Hook::run::<Redis>(&stage.trio, 0, "failover", &[("ALLCLEAR_AVOID_VMS", "db-1")]);
    stage.trio.thaw(2);
    let expected = "no member can take over: db-1 is on a VM to avoid; db-2 does not answer: ";
    assert!(ended.status == BLOCKED && ended.said.starts_with(expected), "{ended:?}");
    assert_eq!(stage.primary(), 0);
    is_whole(&stage, writers);
}

/// Right after a full resynchronisation a primary may send nothing for a second, although both members report a link.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_was_just_resynchronised_takes_over_at_the_first_attempt() {
    crate::left_out::long!();
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    for trial in 0..6 {
        let (primary, heir) = (trial % 2, (trial + 1) % 2);
        // Another history, so that the primary sends everything.
        ask(&stage.trio, heir, &["REPLICAOF", "NO", "ONE"]).unwrap();
        ask(&stage.trio, heir, &["SET", "stray", "1"]).unwrap();
        ask(&stage.trio, heir, &["REPLICAOF", stage.trio.vms[primary].host(), stage.trio.vms[primary].port()]).unwrap();
        until("a link", || match role(&stage.trio, heir) {
            Ok(told) if told[0] == "slave" && told[3] == "connected" => Ok(()),
            told => Err(format!("{told:?}")),
        });
        Hook::until_done::<Redis>(&stage.trio, primary, "failover", &[("ALLCLEAR_AVOID_VMS", "db-2")]);
        writers.go_on();
        Hook::until_done::<Redis>(&stage.trio, primary, "restore", &[]);
    }
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
        std::thread::sleep(Duration::from_millis(2 * trial));
        hook.signal(if trial % 2 == 0 { Signal::SIGKILL } else { Signal::SIGTERM });
        hook.end();
        Hook::until_done::<Redis>(&stage.trio, primary, "failover", &[UNDO]);
        writers.go_on();
        Hook::until_done::<Redis>(&stage.trio, primary, "restore", &[]);
    }
    is_whole(&stage, writers);
}

/// Kills the failover in the moment without a primary.
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

/// The successor may have taken over before its death, and would be a second primary when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_successor_that_dies_in_the_middle_is_waited_for_before_the_old_primary_leads_again() {
    if !is_installed::<Redis>() {
        return;
    }
    let mut stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    let watch = Watch::begin::<Redis>(&stage.trio);
    Hook::killed_where::<Redis>(&stage.trio, 0, "failover", "before MULTI; REPLICAOF NO ONE", &[]);
    for place in [1, 2] {
        stage.take_away(Kind::Reboot, place);
    }
    let ended = Hook::run::<Redis>(&stage.trio, 0, "failover", &[UNDO]);
    assert!(ended.status == BLOCKED && ended.said.contains("may have taken over"), "{ended:?}");
    for place in [1, 2] {
        Redis::boot(&stage.trio, place);
    }
    Hook::until_done::<Redis>(&stage.trio, 0, "failover", &[UNDO]);
    writers.go_on();
    assert_eq!(stage.primary(), 0);
    watch.end();
    is_whole(&stage, writers);
}

/// Each time the successor hangs as soon as writes are stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn writes_are_stopped_in_vain_twice_at_the_most_for_one_event() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let writers = Writers::start::<Redis>(&stage.trio);
    let told = [("ALLCLEAR_EVENT_ID", "event")];
    for _ in 0..2 {
        let streams = || Hook::run::<Redis>(&stage.trio, 0, "failover", &[("ALLCLEAR_MODE", "dry_run")]);
        until("successors", || if streams().status == DONE { Ok(()) } else { Err(streams().said) });
        let hook = Hook::stopped_where::<Redis>(&stage.trio, 0, "failover", "before CLIENT PAUSE", &told);
        stage.trio.freeze(1);
        stage.trio.freeze(2);
        hook.signal(Signal::SIGCONT);
        let ended = hook.end();
        stage.trio.thaw(1);
        stage.trio.thaw(2);
        let reason = "did not answer INFO: timed out; db-0 is the primary as before";
        assert!(ended.status == FAILED && ended.said.contains(reason), "{ended:?}");
        writers.go_on();
    }
    let ended = until("a last attempt", || match Hook::run::<Redis>(&stage.trio, 0, "failover", &told) {
        Ended { status: BLOCKED, said } => Err(said),
        ended => Ok(ended),
    });
    assert!(ended.status == FAILED && ended.said.contains("stopped 2 times in vain"), "{ended:?}");
    Hook::until_done::<Redis>(&stage.trio, 0, "failover", &[("ALLCLEAR_EVENT_ID", "another")]);
    assert_ne!(stage.primary(), 0);
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
