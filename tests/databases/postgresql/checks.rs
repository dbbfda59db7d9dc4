//! Faults and omissions are found by `check`, which changes nothing, and reported with a remedy.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

use nix::unistd::geteuid;

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{System as _, ThreeNodeBed, VMS, is_installed, until};
use super::{Postgresql, READING, open};

fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Vec<Vec<String>> {
    until(what, || {
        open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
    })
}

/// Wrong settings of the hook, and the report on each.
const SETTINGS: [(&str, &str, &str); 8] = [
    ("PGDATA", "/nonexistent", "has no data"),
    ("START", "pg_ctlcluster-of-nobody 15 main start", "START: there is no pg_ctlcluster-of-nobody"),
    ("START", "pg_ctlcluster 15 nothing start", "START"),
    ("PRIMARY_CONNINFO", "user=nobody_known", "PRIMARY_CONNINFO does not let db-0 replicate from db-1"),
    ("PGUSER", "weak", "weak is no superuser"),
    ("STATE_DIR", "/proc/allclear", "STATE_DIR"),
    ("SYNCHRONOUS", "FIRST", "SYNCHRONOUS is 'FIRST'"),
    ("POOLERS", "127.0.0.1:1", "pooler 127.0.0.1:1: connection to server"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn whatever_is_missing_is_found_before_any_event() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    for place in 0..VMS.len() {
        let ended = Hook::run::<Postgresql>(trio, place, "check", &[]);
        assert_eq!(ended.status, DONE, "{ended:?}");
    }
    ask(trio, 0, "select pg_create_physical_replication_slot('left_over', true)");
    let ended = Hook::run::<Postgresql>(trio, 1, "check", &[]);
    let doubt = "db-0: nobody reads the replication slot left_over";
    assert!(ended.status == DONE && ended.said.contains(doubt), "{ended:?}");
    ask(trio, 0, "select pg_drop_replication_slot('left_over')");
    ask(trio, 0, "create role weak login");
    for (name, value, told) in SETTINGS {
        let ended = Hook::run::<Postgresql>(trio, 0, "check", &[(name, value)]);
        assert_eq!(ended.status, FAILED, "{name} {value}: {ended:?}");
        assert!(ended.said.contains(told), "{name} {value}: {ended:?}");
    }
    for (place, setting, told) in [
        (0, "max_wal_senders = 3", "db-0: max_wal_senders = 3: as primary it needs 4"),
        (1, "primary_slot_name = 'a_slot'", "db-1: primary_slot_name is set"),
        (0, "recovery_target_timeline = 'current'", "db-0: set hot_standby = on and recovery_target_timeline"),
        (0, "wal_keep_size = 0", "db-0: set wal_keep_size"),
        (0, "full_page_writes = off", "db-0: full_page_writes = off"),
        (1, "primary_conninfo = 'host=127.0.0.1 port=1'", "db-1 does not stream from db-0"),
        (0, "max_connections = 150", "db-1 has max_connections = 100, which is lower than 150 on db-0"),
    ] {
        ask(trio, place, &format!("alter system set {setting}"));
        trio.kill(place);
        Postgresql::boot(trio, place);
        ask(trio, place, "select 1");
        until(told, || {
            let ended = Hook::run::<Postgresql>(trio, 0, "check", &[]);
            if ended.status == FAILED && ended.said.contains(told) { Ok(()) } else { Err(format!("{ended:?}")) }
        });
        ask(trio, place, &format!("alter system reset {}", setting.split(' ').next().unwrap()));
        ask(trio, place, "select pg_reload_conf()");
    }
}

/// A standby needs settings at least as high as its primary's. The server's own words are in the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_server_that_cannot_be_a_standby_is_told_in_its_own_words() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let told = [("ALLCLEAR_PREFER_VMS", "db-1")];
    ask(trio, 1, "alter system set max_connections = 150");
    trio.kill(1);
    Postgresql::boot(trio, 1);
    until("a switch", || {
        let ended = Hook::run::<Postgresql>(trio, 0, "failover", &[("ALLCLEAR_AVOID_VMS", "db-2"), told[0]]);
        if ended.status == DONE { Ok(()) } else { Err(format!("{ended:?}")) }
    });
    let ended = Hook::run::<Postgresql>(trio, 0, "restore", &[]);
    // From 14 on the server starts, and replays no more; before 14 the server does not start.
    assert!(matches!(ended.status, BLOCKED | FAILED), "{ended:?}");
    assert!(ended.said.contains("max_connections = 100 is a lower setting than on the primary"), "{ended:?}");
}

/// The log which a standby lacks is no longer there on its primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_whose_log_was_removed_is_told_in_the_servers_words() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    for setting in ["wal_keep_size = 0", "max_wal_size = '32MB'"] {
        ask(trio, 0, &format!("alter system set {setting}"));
    }
    ask(trio, 0, "select pg_reload_conf()");
    trio.kill(1);
    ask(trio, 0, "create table bulk as select repeat('x', 500) from generate_series(1, 200000)");
    for _ in 0..3 {
        ask(trio, 0, "select pg_switch_wal()");
        ask(trio, 0, "checkpoint");
    }
    Postgresql::boot(trio, 1);
    let ended = Hook::run::<Postgresql>(trio, 1, "restore", &[]);
    assert_eq!(ended.status, BLOCKED, "{ended:?}");
    assert!(ended.said.contains("has already been removed"), "{ended:?}");
}

/// The file system of the data is not mounted: nothing is copied below its mount point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_data_disk_that_is_not_mounted_is_no_lost_data() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let noted = trio.vms[1].folder.join("state/postgresql-db-1-place.json");
    Hook::until_done::<Postgresql>(trio, 1, "restore", &[]);
    assert!(noted.exists(), "its place was noted");
    trio.kill(1);
    trio.lose_data(1).unwrap();
    let data = trio.vms[1].data();
    fs::write(&noted, format!(r#"{{"folder": "{0}", "mount": "{0}"}}"#, data.display())).unwrap();
    let ended = Hook::run::<Postgresql>(trio, 1, "restore", &[]);
    assert_eq!(ended.status, BLOCKED, "{ended:?}");
    assert!(ended.said.contains("is not mounted") && !data.exists(), "{ended:?}");
    fs::remove_file(&noted).unwrap();
    Hook::until_done::<Postgresql>(trio, 1, "restore", &[]);
}

/// A new file system has a folder lost+found of root's. The file system is filled regardless, and the folder is
/// reported from then on: `pg_basebackup` from there would fail at lost+found, and so would `pg_rewind`. Any other file
/// there, as a hidden file at a mount point, may be a user's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_new_file_system_at_the_place_of_the_data_is_filled() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let data = trio.vms[1].data();
    let (roots, hidden) = (data.join("lost+found"), data.join(".snapshot"));
    trio.kill(1);
    trio.lose_data(1).unwrap();
    fs::create_dir_all(&roots).unwrap();
    trio.own(&data).unwrap();
    chown(&roots, Some(geteuid().as_raw()), None).unwrap();
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o000)).unwrap();
    fs::write(&hidden, "").unwrap();
    let ended = Hook::run::<Postgresql>(trio, 1, "restore", &[]);
    assert!(ended.status == FAILED && ended.said.contains("but other contents"), "{ended:?}");
    fs::remove_file(&hidden).unwrap();
    Hook::until_done::<Postgresql>(trio, 1, "restore", &[]);
    let ended = Hook::run::<Postgresql>(trio, 1, "check", &[]);
    assert!(ended.status == FAILED && ended.said.contains("has lost+found, which its owner cannot read"), "{ended:?}");
    fs::set_permissions(data.join("pg_hba.conf"), fs::Permissions::from_mode(0o400)).unwrap();
    let ended = Hook::run::<Postgresql>(trio, 1, "check", &[]);
    assert!(ended.said.contains("has lost+found, pg_hba.conf, which"), "{ended:?}");
    fs::set_permissions(data.join("pg_hba.conf"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_dir(&roots).unwrap();
    let ended = Hook::run::<Postgresql>(trio, 1, "check", &[]);
    assert_eq!(ended.status, DONE, "{ended:?}");
}

/// Some data are there, without the file with which a server begins: a person has to inspect the data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn data_of_which_some_are_missing_are_not_copied_over() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    stage.trio.kill(1);
    let data = stage.trio.vms[1].data();
    fs::remove_file(data.join("global/pg_control")).unwrap();
    let ended = Hook::run::<Postgresql>(&stage.trio, 1, "restore", &[]);
    assert_eq!(ended.status, FAILED, "{ended:?}");
    assert!(ended.said.contains("has no global/pg_control") && data.join("base").exists(), "{ended:?}");
}
