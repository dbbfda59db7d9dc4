//! A hook at the wrong server: the hook's `ALLCLEAR_VM` or address belongs to another server than PGDATA, as after a
//! hook run by hand on the wrong VM. Paths are equal on all VMs, so only the server can show the difference.

use super::super::hook::{FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{is_installed, until};
use super::super::writers::Writers;
use super::{Postgresql, READING, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_beside_another_server_stops_nothing() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let data_of = |place: usize| trio.vms[place].data().display().to_string();
    let none = trio.elsewhere.folder.join("none");
    std::fs::create_dir(&none).unwrap();
    trio.own(&none).unwrap();
    std::fs::write(none.join("standby.signal"), "").unwrap();
    let none = none.display().to_string();
    let writers = Writers::start::<Postgresql>(trio);
    writers.go_on();
    for (place, phase, data, why) in [
        (0, "check", data_of(1), "is not the server on"),
        (0, "failover", data_of(1), "is not the server on"),
        (2, "shutdown", data_of(1), "is not the server on"),
        (0, "failover", none.clone(), "none runs on"),
        (2, "shutdown", none, "none runs on"),
    ] {
        let ended = Hook::run::<Postgresql>(trio, place, phase, &[("PGDATA", &data)]);
        assert_eq!(ended.status, FAILED, "{phase} on {data}: {ended:?}");
        assert!(ended.said.contains(why), "{phase} on {data}: {ended:?}");
    }
    assert_eq!(stage.primary(), 0);
    until("both standbys that stream", || {
        let mut primary = open(trio, 0, READING).map_err(|error| error.to_string())?;
        let streaming = "select count(*) from pg_stat_replication where state = 'streaming'";
        let count = primary.ask(streaming).map_err(|error| error.to_string())?;
        if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
    });
    writers.go_on();
    stage.all_is_there(writers);
}
