//! The reason of a failed replication is reported in the server's own words, for any words.

use std::fs;

use super::super::hook::{BLOCKED, DONE, FAILED, Hook, NOT_APPLICABLE};
use super::super::stage::Stage;
use super::super::trio::{is_installed, until};
use super::super::writers::Writers;
use super::{MariaDb, by_socket, call, start};

const OTHER_AVOIDED: (&str, &str) = ("ALLCLEAR_AVOID_VMS", "db-2");

fn until_status(stage: &Stage<MariaDb>, place: usize, words: &str) {
    until(words, || match by_socket(&stage.trio, place, "SHOW ALL SLAVES STATUS") {
        said if said.contains(words) => Ok(()),
        said => Err(said),
    });
}

/// A duplicate key is part of the error. Ends of a row of an answer, or of a line of a text, do not end the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_with_line_ends_in_it_stays_one_reason() {
    crate::left_out::long!();
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let table = "CREATE TABLE app.names (name VARCHAR(90) CHARACTER SET utf8mb4 PRIMARY KEY)";
    by_socket(&stage.trio, 0, table);
    until_status(&stage, 1, "\tYes\t");
    // A carriage return, a line separator and a paragraph separator, a next line, a newline, a tab, a NUL, a backslash.
    let hex = "6F6E6509616E64 0D 74776F E280A8 E280A9 C285 0A 5C6E 5C 00 656E64".replace(' ', "");
    let insert = format!("INSERT INTO app.names VALUES (UNHEX('{hex}'))");
    by_socket(&stage.trio, 1, &format!("SET sql_log_bin = 0; {insert}"));
    by_socket(&stage.trio, 0, &insert);
    until_status(&stage, 1, "Duplicate entry");
    let (status, said) = call(&stage, 0, "failover", &[OTHER_AVOIDED]);
    assert_eq!(status, BLOCKED, "{said}");
    assert!(said.contains("db-1: its SQL thread has stopped with error 1062: "), "{said}");
    assert!(said.contains("Duplicate entry 'one and two"), "{said}");
    let reason = said.lines().find(|line| line.contains("no member can take over")).unwrap();
    assert!(reason.contains("Duplicate entry") && reason.ends_with("db-2: is on a VM to avoid"), "{reason}");
    let (status, said) = call(&stage, 1, "restore", &[]);
    assert!(status == FAILED && said.contains("error 1062"), "{status:?} {said}");
    let (status, said) = call(&stage, 1, "ready", &[]);
    assert!(status == BLOCKED && said.contains("error 1062"), "{status:?} {said}");
    by_socket(&stage.trio, 1, "SET sql_log_bin = 0; DELETE FROM app.names");
    Hook::until_done::<MariaDb>(&stage.trio, 1, "restore", &[]);
    let ready = |place| call(&stage, place, "ready", &[]);
    assert!([0, 1, 2].iter().all(|place| ready(*place).0 == DONE));
    assert_eq!(call(&stage, 0, "failover", &[OTHER_AVOIDED]).0, DONE);
    by_socket(&stage.trio, 1, "SET GLOBAL read_only = 1");
    let (status, said) = ready(2);
    assert!(status == BLOCKED && said.contains("nobody is writable"), "{status:?} {said}");
}

/// The binlog which a replica needs is gone: a hook can do nothing, and reports so at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_binlog_that_was_purged_is_told_with_the_servers_words() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 1, "STOP SLAVE");
    let writers = Writers::start::<MariaDb>(&stage.trio);
    writers.go_on();
    by_socket(&stage.trio, 2, "STOP SLAVE");
    by_socket(&stage.trio, 0, "FLUSH BINARY LOGS");
    until("binlogs that are purged", || {
        let last = by_socket(&stage.trio, 0, "SHOW MASTER STATUS");
        let last = last.split('\t').next().unwrap();
        by_socket(&stage.trio, 0, &format!("PURGE BINARY LOGS TO '{last}'"));
        let left = by_socket(&stage.trio, 0, "SHOW BINARY LOGS");
        if left.lines().count() == 1 { Ok(()) } else { Err(left) }
    });
    by_socket(&stage.trio, 1, "START SLAVE");
    until_status(&stage, 1, "\t1236\t");
    let (status, said) = call(&stage, 0, "failover", &[OTHER_AVOIDED]);
    assert_eq!(status, BLOCKED, "{said}");
    assert!(
        said.contains("db-1: its IO thread has stopped with error 1236: Got fatal error 1236 from master"),
        "{said}"
    );
    let (status, said) = call(&stage, 1, "restore", &[]);
    assert!(status == FAILED && said.contains("error 1236"), "{status:?} {said}");
    let (status, said) = call(&stage, 0, "check", &[]);
    assert!(status == FAILED && said.contains("db-1: its IO thread has stopped with error 1236"), "{status:?} {said}");
    drop(writers);
}

/// A server killed while its position was set has no position in its table; the binlog has the position.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_position_that_was_lost_in_a_crash_is_known_by_the_binlog() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    by_socket(&stage.trio, 2, "STOP SLAVE; SET sql_log_bin = 0; DELETE FROM mysql.gtid_slave_pos");
    stage.trio.kill(2);
    start(&stage.trio, 2);
    assert_eq!(by_socket(&stage.trio, 2, "SELECT @@gtid_slave_pos").trim(), "");
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert_eq!(status, DONE, "{said}");
    stage.all_is_there(writers);
}

/// A server killed in CHANGE MASTER has an empty file about its primary, and refuses everything but RESET SLAVE ALL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_file_about_its_primary_that_is_cut_is_made_anew() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    for by_another in [false, true] {
        stage.trio.kill(2);
        fs::write(stage.trio.vms[2].data().join("master.info"), "").unwrap();
        start(&stage.trio, 2);
        if by_another {
            let (status, said) = call(&stage, 0, "failover", &[]);
            assert_eq!((status, stage.primary()), (DONE, 1), "{said}");
        }
        let (status, said) = call(&stage, 2, "restore", &[]);
        assert_eq!(status, DONE, "{said}");
    }
    stage.all_is_there(writers);
}

/// A replica with a named connection would keep it after RESET SLAVE ALL, and follow two primaries after CHANGE MASTER.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_named_connection_is_left_alone_with_the_reason() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    let named = format!(
        "STOP SLAVE; RESET SLAVE ALL; SET @@default_master_connection = 'other'; \
         CHANGE MASTER TO MASTER_HOST = '{}', MASTER_PORT = {}, \
         MASTER_USER = 'replication', MASTER_PASSWORD = 'of replicas', MASTER_USE_GTID = slave_pos; \
         START SLAVE",
        stage.trio.vms[0].host(),
        stage.trio.vms[0].port()
    );
    by_socket(&stage.trio, 1, &named);
    until_status(&stage, 1, "other\t");
    let (status, said) = call(&stage, 0, "failover", &[OTHER_AVOIDED]);
    assert_eq!(status, BLOCKED, "{said}");
    assert!(said.contains("db-1: it replicates over the named connection 'other'"), "{said}");
    for phase in ["restore", "check"] {
        let (status, said) = call(&stage, 1, phase, &[]);
        assert!(status == FAILED && said.contains("over the named connection 'other'"), "{phase} {status:?} {said}");
    }
    assert_eq!(call(&stage, 1, "failover", &[]).0, NOT_APPLICABLE);
    let (status, said) = call(&stage, 0, "failover", &[]);
    assert!(status == DONE && said.contains("db-1: it replicates over the named connection"), "{status:?} {said}");
    assert_eq!(stage.primary(), 2);
    let connections = by_socket(&stage.trio, 1, "SHOW ALL SLAVES STATUS");
    assert_eq!(connections.lines().count(), 1, "{connections}");
    by_socket(&stage.trio, 1, "STOP SLAVE 'other'; RESET SLAVE 'other' ALL");
    Hook::until_done::<MariaDb>(&stage.trio, 1, "restore", &[]);
    stage.all_is_there(writers);
}

/// A primary with a named connection from elsewhere: the connection would not move with the primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_primary_with_a_named_connection_stays_the_primary() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, "CHANGE MASTER 'elsewhere' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 9");
    let (status, said) = call(&stage, 0, "failover", &[]);
    assert!(status == FAILED && said.contains("over the named connection 'elsewhere'"), "{status:?} {said}");
    assert_eq!(stage.primary(), 0);
}

/// Without `gtid_strict_mode` a replica with a write of its own goes on, and numbers alone do not show the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_replica_with_a_transaction_of_its_own_is_never_the_candidate() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    by_socket(&stage.trio, 1, "SET GLOBAL gtid_strict_mode = 0; CREATE DATABASE known_to_nobody");
    until_status(&stage, 1, "\tYes\t");
    writers.go_on();
    let (status, said) = call(&stage, 0, "failover", &[OTHER_AVOIDED]);
    assert!(status == BLOCKED && said.contains("db-1: has transactions that db-0 does not have (0-2-"), "{said}");
    let (status, said) = call(&stage, 0, "failover", &[("ALLCLEAR_PREFER_VMS", "db-1")]);
    assert_eq!((status, stage.primary()), (DONE, 2), "{said}");
    stage.all_is_there(writers);
}
