//! A former primary is back and takes writes, while the present primary does not answer for a moment.

use super::super::hook::{BLOCKED, CONFIRM, DONE, Hook, UNKNOWN};
use super::super::stage::Stage;
use super::super::trio::{System as _, ThreeNodeBed, VMS, is_installed, until};
use super::rewinds::DISCARD;
use super::{Postgresql, READING, open};

fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Vec<Vec<String>> {
    until(what, || {
        open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
    })
}

fn has_the_row(trio: &ThreeNodeBed, place: usize) {
    until("the row", || match ask(trio, place, "select count(*) from rows where client = 1") {
        one if one == [["1"]] => Ok(()),
        found => Err(format!("{}: {found:?}", VMS[place])),
    });
}

/// Otherwise standbys and poolers would be moved to the former primary, and the present primary be stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_primary_is_not_believed_while_the_present_primary_is_silent() {
    crate::left_out::long!();
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    trio.kill(0);
    ask(trio, 1, "select pg_promote()");
    ask(trio, 1, "insert into rows values (1, 1)");
    has_the_row(trio, 2);
    Postgresql::boot(trio, 0);
    assert_eq!(ask(trio, 0, "select pg_is_in_recovery()"), [["f"]]);

    trio.freeze(1);
    for (place, phase) in [(0, "restore"), (0, "ready"), (2, "restore"), (2, "ready")] {
        let ended = Hook::run::<Postgresql>(trio, place, phase, DISCARD);
        let is_told = ended.said.contains("db-0 may be a former primary") && ended.said.contains("db-1: ");
        assert!(ended.status == BLOCKED && is_told, "{phase} on {}: {ended:?}", VMS[place]);
    }
    // On the VM of the present primary.
    for (phase, more, status) in
        [("failover", &[][..], BLOCKED), ("failover", &[CONFIRM], UNKNOWN), ("restore", DISCARD, BLOCKED)]
    {
        let ended = Hook::run::<Postgresql>(trio, 1, phase, more);
        let is_told = ended.said.contains("db-1 does not answer, and its data are of a later timeline");
        assert!(ended.status == status && is_told, "{phase} {more:?}: {ended:?}");
    }
    trio.thaw(1);
    assert_eq!(ask(trio, 1, "select pg_is_in_recovery()"), [["f"]]);
    for place in [0, 2] {
        Hook::until_done::<Postgresql>(trio, place, "restore", DISCARD);
        has_the_row(trio, place);
    }
    assert_eq!(stage.primary(), 1);
}

/// The primary lacks the proof by a standby until one of them has returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn of_two_standbys_that_were_stopped_one_returns_first() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    for place in [1, 2] {
        let ended = Hook::run::<Postgresql>(trio, place, "shutdown", &[]);
        assert_eq!(ended.status, DONE, "{ended:?}");
    }
    let ended = Hook::run::<Postgresql>(trio, 0, "ready", &[]);
    assert!(ended.status == DONE && ended.said.contains("db-0 may be a former primary"), "{ended:?}");
    ask(trio, 0, "insert into rows values (1, 1)");
    for place in [1, 2] {
        Hook::until_done::<Postgresql>(trio, place, "restore", &[]);
        has_the_row(trio, place);
    }
    // And of two standbys without data.
    for place in [1, 2] {
        trio.kill(place);
        trio.lose_data(place).unwrap();
    }
    for place in [1, 2] {
        Hook::until_done::<Postgresql>(trio, place, "restore", &[("ALLCLEAR_EVENT_RESOURCES", "db-1 db-2")]);
        has_the_row(trio, place);
    }
}
