//! The candidate of a failover dies in the moment of its promotion, when writes have stopped: the failover is "unknown",
//! and ends well when the candidate is back, without a lost write and without a second member that takes writes.

use nix::sys::signal::Signal;

use super::hook::{CONFIRM, Ended, Hook, NOT_DONE, UNKNOWN};
use super::killed::Watch;
use super::stage::Stage;
use super::trio::{System, VMS, is_installed, until};
use super::writers::Writers;

const PRIMARY: usize = 0;
const CANDIDATE: usize = 1;

/// `point`: the action that promotes the candidate.
async fn dies_before<S: System>(point: &str) {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::bare().await;
    S::sync_each_write(&stage.trio);
    let writers = Writers::start::<S>(&stage.trio);
    let watch = Watch::begin::<S>(&stage.trio);
    let told = [("ALLCLEAR_EVENT_ID", "event"), ("ALLCLEAR_AVOID_VMS", VMS[2])];
    let failover = || Hook::run::<S>(&stage.trio, PRIMARY, "failover", &told);
    let confirm = || Hook::run::<S>(&stage.trio, PRIMARY, "failover", &[told[0], told[1], CONFIRM]);

    let hook = Hook::stopped_where::<S>(&stage.trio, PRIMARY, "failover", point, &told);
    stage.trio.kill(CANDIDATE);
    hook.signal(Signal::SIGCONT);
    for ended in [hook.end(), confirm(), failover(), confirm()] {
        assert_eq!(ended.status, UNKNOWN, "{ended:?}");
    }
    assert!(!(0..VMS.len()).any(|place| S::takes_writes(&stage.trio, place)), "nobody knows who is the primary");

    S::boot(&stage.trio, CANDIDATE);
    until("a candidate that tells what it is", || match confirm() {
        Ended { status: NOT_DONE, .. } => Ok(()),
        ended => Err(format!("{ended:?}")),
    });
    Hook::until_done::<S>(&stage.trio, PRIMARY, "failover", &told);
    assert_eq!(stage.primary(), CANDIDATE);
    writers.go_on();
    Hook::until_done::<S>(&stage.trio, PRIMARY, "restore", &told);
    watch.end();
    stage.all_is_there(writers);
}

macro_rules! dies_before {
    ($($system:ident: $kind:ty, $point:literal;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "all of them take half an hour"]
        async fn $system() {
            dies_before::<$kind>($point).await;
        })*
    };
}

dies_before! {
    mariadb: crate::databases::mariadb::MariaDb, "before STOP SLAVE ''";
    postgresql: crate::databases::postgresql::Postgresql, "before SELECT pg_promote";
    redis: crate::databases::redis::Redis, "before MULTI; REPLICAOF NO ONE";
}
