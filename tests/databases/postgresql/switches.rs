//! Tests of this hook set alone, called as by a replica, beside servers to which clients write.

use nix::sys::signal::Signal;

use super::super::hook::{FAILED, Hook, UNDO, UNKNOWN};
use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, is_installed};
use super::super::writers::Writers;
use super::Postgresql;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_target_that_dies_in_the_middle_of_the_switch_costs_no_acknowledged_write() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let mut stage = Stage::<Postgresql>::bare().await;
    let writers = Writers::start::<Postgresql>(&stage.trio);
    let hook = Hook::stopped_where::<Postgresql>(&stage.trio, 0, "failover", "pg_promote", &[]);
    for place in [1, 2] {
        stage.take_away(Kind::Reboot, place);
    }
    hook.signal(Signal::SIGCONT);
    let ended = hook.end();
    // Writes were stopped in vain, or the outcome is unknown.
    assert!(matches!(ended.status, FAILED | UNKNOWN), "{ended:?}");
    for place in [1, 2] {
        Postgresql::boot(&stage.trio, place);
    }
    Hook::until_done::<Postgresql>(&stage.trio, 0, "failover", &[UNDO]);
    writers.go_on();
    stage.all_is_there(writers);
}
