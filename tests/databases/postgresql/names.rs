//! Every spelling of the set of synchronous standbys, and every warning of a server at a log-in.

use std::os::unix::fs::PermissionsExt as _;

use super::super::hook::{DONE, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{ThreeNodeBed, is_installed, until};
use super::super::writers::Writers;
use super::{Postgresql, READING, Synchronous, open};

/// Each spelling includes both standbys. The server compares names without their case; a quoted star is a star too.
/// Most guides begin with `*`, and names with a hyphen have to be quoted, in any case of the letters.
const SPELLINGS: [&str; 5] =
    ["*", r#"FIRST 1 ("DB-1", "db-2")"#, r#"ANY 1 ("*")"#, r#""Db-1","db-2""#, r#"first 2 ( "db-2" , * )"#];

fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Vec<Vec<String>> {
    until(what, || {
        open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
    })
}

fn set(trio: &ThreeNodeBed, spelling: &str) {
    ask(trio, 0, &format!("alter system set synchronous_standby_names = '{spelling}'"));
    ask(trio, 0, "select pg_reload_conf()");
    until("the standbys to be waited for", || {
        let count = ask(trio, 0, "select count(*) from pg_stat_replication where sync_state <> 'async'");
        if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} are")) }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_leaves_the_synchronous_set_however_that_is_spelt() {
    if !is_installed::<Synchronous>() {
        return;
    }
    let stage = Stage::<Synchronous>::bare().await;
    for spelling in SPELLINGS {
        set(&stage.trio, spelling);
        let ended = Hook::run::<Synchronous>(&stage.trio, 1, "drain", &[]);
        assert_eq!(ended.status, DONE, "{spelling}: {ended:?}");
        let left = ask(&stage.trio, 0, "select application_name from pg_stat_replication where sync_state <> 'async'");
        assert_eq!(left, [["db-2"]], "{spelling}");
        // A commit does not wait for a disconnected standby.
        stage.trio.freeze(1);
        ask(&stage.trio, 0, "select pg_logical_emit_message(true, 'a commit', '')");
        stage.trio.thaw(1);
    }
}

/// The set was made by hand, and the hooks were set up without the set: a switch would leave every commit waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_synchronous_set_that_the_hooks_do_not_know_of_is_told() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    for spelling in SPELLINGS {
        set(&stage.trio, spelling);
        for (place, phase) in [(1, "shutdown"), (0, "failover"), (0, "check")] {
            let ended = Hook::run::<Postgresql>(&stage.trio, place, phase, &[]);
            assert_eq!(ended.status, FAILED, "{spelling}: {phase}: {ended:?}");
            assert!(ended.said.contains("SYNCHRONOUS"), "{spelling}: {phase}: {ended:?}");
        }
    }
}

/// After an upgrade of the system's library every log-in warns of another version of the collation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_warning_at_each_log_in_changes_nothing() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    ask(&stage.trio, 0, "update pg_database set datcollversion = '0.0' where datname = 'postgres'");
    let writers = Writers::start::<Postgresql>(&stage.trio);
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[]);
    assert_eq!(ended.status, DONE, "{ended:?}");
    assert!(ended.said.contains("collation version"), "it has warned: {ended:?}");
    assert_ne!(stage.primary(), 0);
    for phase in ["restore", "ready", "check"] {
        let ended = Hook::run::<Postgresql>(&stage.trio, 0, phase, &[]);
        assert_eq!(ended.status, DONE, "{phase}: {ended:?}");
    }
    stage.all_is_there(writers);
}

/// Settings of a role, by which the server sends its client more than the answers: plans of several lines for each
/// query with `auto_explain`, which some users have loaded for every session, and all actions of the server.
const TALKATIVE: [(&[&str], &str); 2] = [
    (
        &[
            "session_preload_libraries = 'auto_explain'",
            "auto_explain.log_min_duration = 0",
            "auto_explain.log_level = notice",
        ],
        "Query Text: ",
    ),
    (&["client_min_messages = debug1", "log_statement = 'all'"], "LOG:  statement: "),
];

/// A client warns at each log-in of a password file which other users may read, and ignores the file: in an image of a
/// container the file's rights are often wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn whatever_is_written_beside_an_answer_is_no_part_of_it() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    ask(&stage.trio, 0, "create role hooks login superuser");
    let passwords = stage.trio.elsewhere.folder.join("passwords");
    std::fs::write(&passwords, "*:*:*:hooks:none\n").unwrap();
    std::fs::set_permissions(&passwords, std::fs::Permissions::from_mode(0o644)).unwrap();
    let readable = [("PGUSER", "hooks"), ("PGPASSFILE", passwords.to_str().unwrap())];
    let writers = Writers::start::<Postgresql>(&stage.trio);
    for (settings, more, written) in [
        (&[][..], &readable[..], "permissions should be u=rw"),
        (TALKATIVE[0].0, &readable[..1], TALKATIVE[0].1),
        (TALKATIVE[1].0, &readable[..1], TALKATIVE[1].1),
    ] {
        let primary = stage.primary();
        ask(&stage.trio, primary, "alter role hooks reset all");
        for setting in settings {
            ask(&stage.trio, primary, &format!("alter role hooks set {setting}"));
        }
        until("successors", || match Hook::run::<Postgresql>(&stage.trio, primary, "check", more) {
            ended if ended.status == DONE => Ok(()),
            ended => Err(format!("{ended:?}")),
        });
        for phase in ["failover", "restore", "ready"] {
            let ended = Hook::run::<Postgresql>(&stage.trio, primary, phase, more);
            assert_eq!(ended.status, DONE, "{written}: {phase}: {ended:?}");
            assert!(ended.said.contains(written), "it has written: {ended:?}");
        }
        assert_ne!(stage.primary(), primary);
        writers.go_on();
    }
    stage.all_is_there(writers);
}
