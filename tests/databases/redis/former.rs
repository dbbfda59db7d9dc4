//! A former primary is back and takes writes, while the present primary does not answer for a moment; and a member with
//! writes that the primary never got.

use allclear::testbed::redis::{ask, role};

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{System as _, VMS, is_installed, until};
use super::Redis;

/// Otherwise the replica of the present primary would follow the former primary, and lose what only the two have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_primary_is_not_believed_while_the_present_primary_is_silent() {
    crate::left_out::long!();
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    trio.kill(0);
    Redis::promote(trio, &[1, 2]);
    let primary = stage.primary();
    let replica = 3 - primary;
    ask(trio, primary, &["SET", "new", "there"]).unwrap();
    let has_it = || match ask(trio, replica, &["GET", "new"]) {
        Ok(told) if told == ["there"] => Ok(()),
        told => Err(format!("{told:?}")),
    };
    until("the replica of the present primary", has_it);
    Redis::boot(trio, 0);
    until("a second primary", || ask(trio, 0, &["SET", "apart", "here"]).map_err(|error| error.to_string()));

    trio.freeze(primary);
    for place in [0, replica] {
        for phase in ["restore", "ready"] {
            let ended = Hook::run::<Redis>(trio, place, phase, &[]);
            let silent = format!("{} does not answer", VMS[primary]);
            let is_told =
                ended.said.contains("db-0 takes writes, but may be a former primary") && ended.said.contains(&silent);
            assert!(ended.status == BLOCKED && is_told, "{phase} on {}: {ended:?}", VMS[place]);
        }
    }
    has_it().unwrap();
    assert_eq!(role(trio, replica).unwrap()[2], trio.vms[primary].port(), "it follows as before");
    trio.thaw(primary);
    let ended = Hook::run::<Redis>(trio, 0, "restore", &[]);
    assert!(ended.status == FAILED && ended.said.contains("compare them"), "{ended:?}");
    ask(trio, 0, &["FLUSHALL"]).unwrap();
    for place in [0, replica] {
        Hook::until_done::<Redis>(trio, place, "restore", &[]);
        assert_eq!(ask(trio, place, &["GET", "new"]).unwrap(), ["there"]);
    }
}

/// A member that was a primary for a while, and that a restart or a person has made a replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_replica_with_writes_that_the_primary_never_got_keeps_them_until_a_person_has_looked() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    for words in [&["REPLICAOF", "NO", "ONE"][..], &["SET", "apart", "here"], &["REPLICAOF", "127.0.0.1", "9"]] {
        ask(trio, 2, words).unwrap();
    }
    let keeps_it = || assert_eq!(ask(trio, 2, &["GET", "apart"]).unwrap(), ["here"]);
    let blocked = |primary: usize| {
        let ended = Hook::run::<Redis>(trio, 2, "restore", &[]);
        let why = format!("db-2 has another history than {}, and perhaps writes", VMS[primary]);
        let how = format!(
            "say SAVE on db-2 and copy its dump file, or export the keys; then say REPLICAOF {}",
            trio.vms[primary].host()
        );
        assert!(ended.status == BLOCKED && ended.said.contains(&why) && ended.said.contains(&how), "{ended:?}");
        keeps_it();
    };
    blocked(0);
    // The other members move, and this one is left alone.
    Hook::until_done::<Redis>(trio, 0, "failover", &[]);
    assert_eq!(stage.primary(), 1);
    Hook::until_done::<Redis>(trio, 0, "restore", &[]);
    keeps_it();
    blocked(1);
    ask(trio, 2, &["REPLICAOF", trio.vms[1].host(), trio.vms[1].port()]).unwrap();
    Hook::until_done::<Redis>(trio, 2, "restore", &[]);
    assert_eq!(Hook::run::<Redis>(trio, 2, "ready", &[]).status, DONE);
}
