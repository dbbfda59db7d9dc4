//! The reason of a standby's failed return is reported in the server's own words, for any place and format of the
//! server's log.

use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{System as _, ThreeNodeBed, find, is_installed, until};
use super::{Postgresql, READING, open};

fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Vec<Vec<String>> {
    until(what, || {
        open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
    })
}

/// Log tools need values separated by commas, or JSON, which the server has from version 15 on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn the_reason_is_found_in_a_log_of_any_format() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let version: u32 = ask(trio, 0, "show server_version_num")[0][0].parse().unwrap();
    trio.kill(1);
    let set = |settings: &str| {
        let path = trio.vms[1].data().join("postgresql.auto.conf");
        File::options().append(true).open(path).unwrap().write_all(settings.as_bytes()).unwrap();
    };
    set("logging_collector = on\nrecovery_target_timeline = '99'\n");
    for format in ["stderr", "csvlog", "jsonlog"].iter().take(if version < 150_000 { 2 } else { 3 }) {
        set(&format!("log_destination = '{format}'\n"));
        let ended = Hook::run::<Postgresql>(trio, 1, "restore", &[]);
        assert_eq!(ended.status, FAILED, "{format}: {ended:?}");
        assert!(ended.said.contains("recovery target timeline 99 does not exist"), "{format}: {ended:?}");
        let _ = std::fs::remove_dir_all(trio.vms[1].data().join("log"));
    }
    set("recovery_target_timeline = 'latest'\n");
    Hook::until_done::<Postgresql>(trio, 1, "restore", &[]);
}

/// A streaming backup takes the place of a standby: the new primary has as many senders as the old primary, and more
/// clients want a sender.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_primary_without_a_free_sender_is_told_in_its_own_words() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    // A standby's setting may never be below the known setting of its primary.
    for place in 0..3 {
        ask(trio, place, "alter system set max_wal_senders = 2");
        trio.kill(place);
        Postgresql::boot(trio, place);
        let end = ask(trio, 0, "select pg_current_wal_lsn()");
        for standby in [1, 2] {
            until("a standby that knows", || {
                let knows = ask(trio, standby, &format!("select pg_last_wal_replay_lsn() >= '{}'", end[0][0]));
                if knows == [["t"]] { Ok(()) } else { Err(format!("{knows:?}")) }
            });
        }
    }
    until("a switch", || {
        let ended = Hook::run::<Postgresql>(trio, 0, "failover", &[("ALLCLEAR_AVOID_VMS", "db-2")]);
        if ended.status == DONE { Ok(()) } else { Err(format!("{ended:?}")) }
    });
    until("the other standby", || {
        let count = ask(trio, 1, "select count(*) from pg_stat_replication where state = 'streaming'");
        if count == [["1"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
    });
    let mut command = trio.command(1, "pg_receivewal").unwrap();
    command.args(["-h", trio.vms[1].host(), "-p", trio.vms[1].port(), "-U", "postgres", "-D"]);
    let mut backup = command.arg(&trio.vms[1].folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the backup", || {
        let count = ask(trio, 1, "select count(*) from pg_stat_replication where state = 'streaming'");
        if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
    });
    let ended = Hook::run::<Postgresql>(trio, 0, "restore", &[]);
    backup.kill().unwrap();
    backup.wait().unwrap();
    assert!(ended.status == BLOCKED && ended.said.contains("exceeds max_wal_senders (currently 2)"), "{ended:?}");
    Hook::until_done::<Postgresql>(trio, 0, "restore", &[]);
}

/// Servers log in the language of their system: of an error in Russian or Chinese only the place at the end is known.
#[test]
fn without_a_known_word_the_last_lines_are_the_reason() {
    let Some(python) = find("python3") else { return println!("SKIPPED: there is no python3") };
    let folder = tempfile::tempdir().unwrap();
    let hooks = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/hooks");
    let log = folder.path().join("postgresql.log");
    std::fs::write(&log, "before\n").unwrap();
    let script = format!(
        "import os, sys; sys.dont_write_bytecode = True; sys.path.insert(0, {hooks:?})\n\
         from pathlib import Path; from allclear_hook import Told; from postgresql_server import Here\n\
         here = Here(Told({{'ALLCLEAR_VM': 'db-0', 'MEMBERS': 'db-0=h:1'}}), Path('/nonexistent'))\n\
         words = here.words(); log = open({log:?}, 'a')\n\
         log.write('СООБЩЕНИЕ:  запуск\\nВАЖНО:  линия времени 99 не существует\\n\\n'); log.flush()\n\
         print(words().encode())\n\
         log.write('FATAL:  in English\\n'); log.flush()\n\
         print(words())"
    );
    let mut command = std::process::Command::new(python);
    command.env("STATE_DIR", folder.path()).env("MEMBERS", "db-0=h:1").args(["-c", &script]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let russian = "; СООБЩЕНИЕ:  запуск; ВАЖНО:  линия времени 99 не существует";
    let coded: String = russian
        .bytes()
        .map(|byte| if byte < 128 { char::from(byte).to_string() } else { format!("\\x{byte:02x}") })
        .collect();
    assert_eq!(said, format!("b'{coded}'\n; in English\n"));
}
