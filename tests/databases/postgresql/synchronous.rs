//! PostgreSQL whose commits wait for the first standby: no commit may wait for a disconnected standby.

use std::io;
use std::thread;
use std::time::Duration;

use super::super::events::{takes_a_replica, takes_so_many, takes_the_primary};
use super::super::hook::{BLOCKED, DONE, Hook};
use super::super::record::Row;
use super::super::stage::{Kind, Stage};
use super::super::trio::{System, ThreeNodeBed, is_installed, until};
use super::{PostgresConnection, Postgresql, READING, open};

pub(crate) struct Synchronous;

impl System for Synchronous {
    const NAME: &'static str = "PostgreSQL, synchronous";
    const TABLES: &'static [&'static str] = Postgresql::TABLES;
    const PROGRAMS: &'static [&'static str] = Postgresql::PROGRAMS;
    const USER: &'static str = Postgresql::USER;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        Postgresql::found(trio);
        let mut primary = open(trio, 0, READING).unwrap();
        primary.ask(r#"alter system set synchronous_standby_names = 'FIRST 1 ("db-1", "db-2")'"#).unwrap();
        primary.ask("select pg_reload_conf()").unwrap();
        until("a synchronous standby", || {
            let count =
                primary.ask("select count(*) from pg_stat_replication where sync_state in ('sync', 'potential')");
            let count = count.map_err(|error| error.to_string())?;
            if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} are")) }
        });
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        Postgresql::boot(trio, place);
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        [Postgresql::settings(trio, place), vec![("SYNCHRONOUS", "FIRST 1".into())]].concat()
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<PostgresConnection> {
        Postgresql::connect(trio, place, patience)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        Postgresql::rows(trio, place)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_freeze_of_a_synchronous_standbys_vm_is_not_waited_for() {
    takes_a_replica::<Synchronous>(Kind::Freeze).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_synchronous_primary_moves_and_commits_go_on() {
    takes_the_primary::<Synchronous>(Kind::Reboot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_primary_and_a_synchronous_standby_go_away_together_and_commits_go_on() {
    takes_so_many::<Synchronous>(Kind::Reboot, 2).await;
}

/// A standby answers after a change, and where every client waits for a commit there is no change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_commit_that_waits_for_a_standby_which_leaves_is_not_left_waiting() {
    if !is_installed::<Synchronous>() {
        return;
    }
    let stage = Stage::<Synchronous>::bare().await;
    let ask = |place, what: &str| open(&stage.trio, place, READING).unwrap().ask(what).unwrap();
    stage.trio.freeze(1);
    let mut client = open(&stage.trio, 0, READING).unwrap();
    let commit = thread::spawn(move || client.ask("select pg_logical_emit_message(true, 'a commit', '')"));
    let waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
    until("the commit to wait for the frozen standby alone", || {
        let lacks = "select count(*) from pg_stat_replication \
                     where application_name = 'db-2' and flush_lsn < pg_current_wal_insert_lsn()";
        let seen = [ask(0, waits), ask(0, lacks)];
        if seen == [[["1"]], [["0"]]] { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    let ended = Hook::run::<Synchronous>(&stage.trio, 1, "drain", &[]);
    assert_eq!((ended.status, ask(0, waits)), (DONE, vec![vec!["0".to_owned()]]), "{}", ended.said);
    commit.join().unwrap().unwrap();
    stage.trio.thaw(1);
}

/// Where no other standby streams, a removal of a standby from the set would have every commit wait for a missing
/// standby.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn the_last_standby_that_streams_does_not_leave() {
    if !is_installed::<Synchronous>() {
        return;
    }
    let stage = Stage::<Synchronous>::bare().await;
    let set = || open(&stage.trio, 0, READING).unwrap().ask("show synchronous_standby_names").unwrap();
    let before = set();
    stage.trio.kill(2);
    let ended = Hook::run::<Synchronous>(&stage.trio, 1, "drain", &[]);
    assert_eq!((ended.status, set()), (BLOCKED, before), "{}", ended.said);
    assert!(ended.said.contains("db-2"), "{}", ended.said);
    Synchronous::boot(&stage.trio, 2);
    Hook::until_done::<Synchronous>(&stage.trio, 1, "drain", &[]);
    assert_eq!(set(), [[r#"FIRST 1 ("db-2")"#]]);
}

/// A set in which more standbys are named than have to answer: the standbys that stay must be enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_leaves_a_set_of_three_only_while_two_others_stream() {
    if !is_installed::<Synchronous>() {
        return;
    }
    let stage = Stage::<Synchronous>::bare().await;
    let ask = |what: &str| open(&stage.trio, 0, READING).unwrap().ask(what).unwrap();
    let set = || ask("show synchronous_standby_names");
    let members = with_a_fourth_member(&stage.trio);
    let of_two = [("MEMBERS", members.as_str()), ("SYNCHRONOUS", "ANY 2")];
    ask(r#"alter system set synchronous_standby_names = 'ANY 2 ("db-1", "db-2", "elsewhere")'"#);
    ask("select pg_reload_conf()");
    until("three standbys to choose from", || {
        let count = ask("select count(*) from pg_stat_replication where sync_state = 'quorum'");
        if count == [["3"]] { Ok(()) } else { Err(format!("{count:?} are")) }
    });
    let before = set();
    stage.trio.kill(2);
    let ended = Hook::run::<Synchronous>(&stage.trio, 1, "drain", &of_two);
    assert_eq!((ended.status, set()), (BLOCKED, before), "{}", ended.said);
    assert!(ended.said.contains("db-2"), "{}", ended.said);
    Synchronous::boot(&stage.trio, 2);
    Hook::until_done::<Synchronous>(&stage.trio, 1, "drain", &of_two);
    assert_eq!(set(), [[r#"ANY 2 ("db-2", "elsewhere")"#]]);
    stage.trio.freeze(1);
    ask("select pg_logical_emit_message(true, 'a commit', '')");
    stage.trio.thaw(1);
}

/// Starts a standby on the VM outside of the cluster. Returns `MEMBERS` with this standby.
fn with_a_fourth_member(trio: &ThreeNodeBed) -> String {
    let (primary, fourth) = (&trio.vms[0], &trio.elsewhere);
    let settings = format!(
        "listen_addresses = '{host}'\nport = {port}\nunix_socket_directories = '{folder}'\n\
         primary_conninfo = 'host={source} port={from} user=postgres application_name=elsewhere'\n",
        host = fourth.host(),
        port = fourth.port(),
        folder = fourth.folder.display(),
        source = primary.host(),
        from = primary.port(),
    );
    std::fs::write(fourth.folder.join("server.conf"), settings).unwrap();
    let data = fourth.data().display().to_string();
    let from = ["-h", primary.host(), "-p", primary.port(), "-U", "postgres"];
    trio.run(1, "pg_basebackup", &[&["-D", &data, "-c", "fast", "--no-sync"], &from[..]].concat()).unwrap();
    let signal = fourth.data().join("standby.signal");
    std::fs::write(&signal, "").unwrap();
    trio.own(&signal).unwrap();
    trio.spawn_on(fourth, "postgres", &["-D", &data]).unwrap();
    format!("{} elsewhere={}", trio.members(0), fourth.addresses[0])
}
