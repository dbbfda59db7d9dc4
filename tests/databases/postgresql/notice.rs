//! A switch within a short notice: it begins only with enough time for itself and its undo.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::super::hook::{BLOCKED, DONE, Hook};
use super::super::stage::Stage;
use super::super::trio::{is_installed, until};
use super::super::writers::Writers;
use super::{Postgresql, READING, open};

/// The notice of a preemption leaves 22 s to the hook.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_begins_only_with_the_time_for_its_undo() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let failover = |more: &[(&str, &str)]| Hook::run::<Postgresql>(&stage.trio, 0, "failover", more);
    let writers = Writers::start::<Postgresql>(&stage.trio);
    writers.go_on();
    // A person who tries the switch learns which work it would end.
    let mut long = open(&stage.trio, 0, READING).unwrap();
    long.ask("begin").unwrap();
    until("told of the transaction", || {
        let ended = failover(&[("ALLCLEAR_MODE", "dry_run")]);
        let is_told = ended.said.contains("; the switch ends 1 transaction of more than 10 s");
        if ended.status == DONE && is_told { Ok(()) } else { Err(format!("{ended:?}")) }
    });
    drop(long);
    let short = ("ALLCLEAR_TIME_LEFT_MS", "14000");
    for more in [&[short][..], &[short, ("ALLCLEAR_MODE", "dry_run")]] {
        let ended = failover(more);
        assert!(ended.status == BLOCKED && ended.said.contains("less than 15 s are left"), "{more:?}: {ended:?}");
        assert_eq!(stage.primary(), 0);
    }
    let late = [("ALLCLEAR_TIME_LEFT_MS", "20000")];
    let hook = Hook::stopped_where::<Postgresql>(&stage.trio, 0, "failover", "before CHECKPOINT", &late);
    let since = Instant::now();
    until("most of the time", || if since.elapsed() > Duration::from_secs(6) { Ok(()) } else { Err(String::new()) });
    hook.signal(Signal::SIGCONT);
    let ended = hook.end();
    assert!(ended.status == BLOCKED && ended.said.contains("the checkpoint took too long"), "{ended:?}");
    assert_eq!(stage.primary(), 0);
    writers.go_on();
    let ended = failover(&[("ALLCLEAR_TIME_LEFT_MS", "22000")]);
    assert_eq!(ended.status, DONE, "{ended:?}");
    assert_ne!(stage.primary(), 0);
    Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[]);
    writers.go_on();
    stage.all_is_there(writers);
}
