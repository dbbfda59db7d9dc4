//! A member which went down with writes missing on all other members comes back without these writes: rewound, or
//! copied where its data are lost. The restore is killed at any point, and the member's own service starts the server:
//! the member is never a second primary, and the next attempt completes the restore.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::killed::{Watch, killed_at};
use super::super::stage::Stage;
use super::super::trio::{System, ThreeNodeBed, VMS, is_installed, until};
use super::{Postgresql, READING, open};

/// The answer of the member at `place`, or the error.
fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Result<Vec<Vec<String>>, String> {
    open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
}

/// The consent to a return without the writes that only the member has.
pub(super) const DISCARD: &[(&str, &str)] = &[("LOST_WRITES", "discard")];

/// The state of the crashed member.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum After {
    /// The data are there, with writes missing on all other members.
    Crash,
    /// The data are gone.
    Loss,
    /// As `Crash`, but without the part of the log in which the member's history and the history of the other members
    /// parted.
    Gap,
}

/// Crashes a primary in a switch which another party ended. Returns the primary's place.
pub(super) fn go_down<S: System>(stage: &Stage<S>, round: usize, after: After) -> usize {
    let trio = &stage.trio;
    let primary = stage.primary();
    let others: Vec<_> = (0..VMS.len()).filter(|place| *place != primary).collect();
    for place in &others {
        trio.kill(*place);
    }
    let parted = ask(trio, primary, "select pg_walfile_name(pg_current_wal_lsn())").unwrap();
    ask(trio, primary, &format!("insert into rows values (99, {round})")).unwrap();
    if after == After::Gap {
        ask(trio, primary, "select pg_switch_wal()").unwrap();
    }
    ask(trio, primary, "checkpoint").unwrap();
    ask(trio, primary, &format!("insert into rows select 98, 1000 * {round} + n from generate_series(1, 999) n"))
        .unwrap();
    trio.kill(primary);
    fs::write(trio.vms[primary].data().join("standby.signal"), "").unwrap();
    trio.own(&trio.vms[primary].data().join("standby.signal")).unwrap();
    match after {
        After::Crash => {}
        After::Loss => trio.lose_data(primary).unwrap(),
        After::Gap => fs::remove_file(trio.vms[primary].data().join("pg_wal").join(&parted[0][0])).unwrap(),
    }
    for place in &others {
        S::boot(trio, *place);
    }
    Postgresql::promote(trio, &others);
    let now = stage.primary();
    until("a row", || ask(trio, now, &format!("insert into rows values (1, {round})")));
    for place in others.into_iter().filter(|place| *place != now) {
        Hook::until_done::<S>(trio, place, "restore", &[]);
    }
    primary
}

/// Every member has the rows written after each of `rounds` crashes, and no row of the crashed members alone.
pub(super) fn all_have(trio: &ThreeNodeBed, rounds: usize) {
    let all = vec![vec![rounds.to_string(), "0".to_owned()]];
    let count = "select count(*) filter (where client = 1), count(*) filter (where client > 90) from rows";
    for (place, vm) in VMS.iter().enumerate() {
        until("all rows", || match ask(trio, place, count)? {
            found if found == all => Ok(()),
            found => Err(format!("{vm}: {found:?}, not {all:?}")),
        });
    }
}

/// Resets the member to the data after the crash, without the hooks' state.
fn crash_again(trio: &ThreeNodeBed, place: usize, crashed: &Path) {
    let vm = &trio.vms[place];
    trio.kill(place);
    for folder in [vm.data(), vm.folder.join("state")] {
        let _ = fs::remove_dir_all(folder);
    }
    if crashed.exists() {
        trio.run(place, "cp", &["-a", crashed.to_str().unwrap(), vm.data().to_str().unwrap()]).unwrap();
    }
}

async fn a_restore_is_killed_at_each_point(after: After) {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio: &Arc<ThreeNodeBed> = &stage.trio;
    let place = go_down(&stage, 1, after);
    let crashed = trio.vms[place].folder.join("crashed");
    if after == After::Crash {
        fs::rename(trio.vms[place].data(), &crashed).unwrap();
    }
    let watch = Watch::begin::<Postgresql>(trio);
    for point in 1.. {
        crash_again(trio, place, &crashed);
        let ended = Hook::killed::<Postgresql>(trio, place, "restore", point, DISCARD);
        let Some(at) = killed_at(&ended) else {
            assert_eq!(ended.status, DONE, "{ended:?}");
            println!("a restore has {} points", point - 1);
            break;
        };
        println!("{at}");
        trio.kill(place);
        Postgresql::boot(trio, place);
        Hook::until_done::<Postgresql>(trio, place, "restore", DISCARD);
        all_have(trio, 1);
    }
    all_have(trio, 1);
    watch.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_rewind_that_is_killed_at_any_point_makes_no_second_primary() {
    a_restore_is_killed_at_each_point(After::Crash).await;
}

/// `pg_basebackup` is cut off by a time limit or a full disk, and leaves a folder from which a server starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_copy_that_is_killed_at_any_point_makes_no_second_primary() {
    a_restore_is_killed_at_each_point(After::Loss).await;
}

/// A file which only root may change, as left by configuration tools: the dry run of `pg_rewind` succeeds, and the real
/// run ends in the middle, when some files are the new primary's. Before version 14 `pg_control` was spoilt then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_rewind_that_cannot_write_a_file_makes_no_second_primary() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let place = go_down(&stage, 1, After::Crash);
    let watch = Watch::begin::<Postgresql>(trio);
    let chmod = |file: &str, mode| {
        fs::set_permissions(trio.vms[place].data().join(file), fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod("postgresql.conf", 0o444);
    let ended = Hook::run::<Postgresql>(trio, place, "restore", DISCARD);
    assert!(ended.status == FAILED && ended.said.contains("nothing was changed: "), "{ended:?}");
    assert!(ended.said.contains("has postgresql.conf, which its owner cannot"), "{ended:?}");
    chmod("postgresql.conf", 0o644);
    // Only `pg_rewind` itself finds this file.
    chmod("global/pg_filenode.map", 0o444);
    let ended = Hook::run::<Postgresql>(trio, place, "restore", DISCARD);
    assert!(ended.status == BLOCKED && ended.said.contains("pg_filenode.map"), "{ended:?}");
    Postgresql::boot(trio, place);
    chmod("global/pg_filenode.map", 0o600);
    Hook::until_done::<Postgresql>(trio, place, "restore", DISCARD);
    all_have(trio, 1);
    watch.end();
}

/// `pg_rewind` reads the log from the last checkpoint in both histories. This part of the log is removed when a crashed
/// member was at work for long without its standbys: `pg_rewind` reports a missing record, and changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_rewind_that_lacks_a_part_of_the_log_makes_no_second_primary() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let place = go_down(&stage, 1, After::Gap);
    let watch = Watch::begin::<Postgresql>(trio);
    let ended = Hook::run::<Postgresql>(trio, place, "restore", DISCARD);
    assert!(ended.status == FAILED && ended.said.contains("nothing was changed: pg_rewind: error: "), "{ended:?}");
    Postgresql::boot(trio, place);
    let is_standby = until("a standby of nobody", || ask(trio, place, "select pg_is_in_recovery()"));
    assert_eq!(is_standby, [["t"]]);
    trio.kill(place);
    trio.lose_data(place).unwrap();
    Hook::until_done::<Postgresql>(trio, place, "restore", DISCARD);
    all_have(trio, 1);
    watch.end();
}

/// After a promotion by hand, the crashed primary may have the only copy of acknowledged writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_only_a_crashed_member_has_are_kept_until_they_may_be_discarded() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let primary = stage.primary();
    let others: Vec<_> = (0..VMS.len()).filter(|place| *place != primary).collect();
    trio.kill(primary);
    Postgresql::promote(trio, &others);
    let now = stage.primary();
    until("a row", || ask(trio, now, "insert into rows values (1, 1)"));
    for place in (0..VMS.len()).filter(|place| *place != now) {
        Hook::until_done::<Postgresql>(trio, place, "restore", &[]);
    }
    all_have(trio, 1);
    let place = go_down(&stage, 2, After::Crash);
    let ended = Hook::run::<Postgresql>(trio, place, "restore", &[]);
    assert!(ended.status == FAILED && ended.said.contains(" committed transactions after "), "{ended:?}");
    assert!(ended.said.contains("run restore with LOST_WRITES = discard. Its data were not changed"), "{ended:?}");
    Hook::until_done::<Postgresql>(trio, place, "restore", DISCARD);
    all_have(trio, 2);
}

/// After a switch a standby streams a timeline that its control file does not have before the next restartpoint. Then a
/// standby that has received less is promoted by hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_only_a_standby_has_are_kept_also_before_its_first_restartpoint() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let has = |place, client: usize| {
        until("a row", || match ask(trio, place, &format!("select count(*) from rows where client = {client}"))? {
            found if found == [["0"]] => Err("it is not there".into()),
            _ => Ok(()),
        });
    };
    trio.kill(0);
    Postgresql::promote(trio, &[1]);
    until("a row", || ask(trio, 1, "insert into rows values (1, 1)"));
    has(2, 1);
    Hook::until_done::<Postgresql>(trio, 0, "restore", DISCARD);
    has(0, 1);
    trio.kill(0);
    ask(trio, 1, "insert into rows values (99, 1)").unwrap();
    has(2, 99);
    trio.kill(1);
    Postgresql::boot(trio, 0);
    Postgresql::promote(trio, &[0]);
    until("a row", || ask(trio, 0, "insert into rows values (1, 2)"));
    let signal = trio.vms[1].data().join("standby.signal");
    fs::write(&signal, "").unwrap();
    trio.own(&signal).unwrap();
    Postgresql::boot(trio, 1);

    let timeline = "select timeline_id from pg_control_checkpoint()";
    assert_eq!(ask(trio, 2, timeline).unwrap(), [["1"]], "a restartpoint: the test proves nothing");
    for place in [2, 1] {
        let ended = until("an answer", || match Hook::run::<Postgresql>(trio, place, "restore", &[]) {
            ended if ended.status == BLOCKED => Err(ended.said),
            ended => Ok(ended),
        });
        assert!(ended.status == FAILED && ended.said.contains(" committed transactions after "), "{ended:?}");
        has(place, 99);
    }
    for place in [2, 1] {
        Hook::until_done::<Postgresql>(trio, place, "restore", DISCARD);
    }
    all_have(trio, 2);
}

/// A standby that somebody started as a primary, without a promotion: nothing shows which of the two has the writes to
/// keep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_primaries_on_one_timeline_are_both_left_as_they_are() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let primary = stage.primary();
    let other = (0..VMS.len()).find(|place| *place != primary).unwrap();
    trio.kill(other);
    fs::remove_file(trio.vms[other].data().join("standby.signal")).unwrap();
    Postgresql::boot(trio, other);
    let is_standby = |place| until("an answer", || ask(trio, place, "select pg_is_in_recovery()"));
    assert_eq!([primary, other].map(is_standby), [[["f"]], [["f"]]]);
    for place in [primary, other] {
        let ended = Hook::run::<Postgresql>(trio, place, "restore", &[]);
        assert!(ended.status == FAILED && ended.said.contains("are both primary: stop the one"), "{ended:?}");
    }
    assert_eq!([primary, other].map(is_standby), [[["f"]], [["f"]]]);
}
