//! A primary with a delayed stop: writes pause once for an event, and the reason names the blocking process.

use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::record::WriteRecord;
use super::super::stage::Stage;
use super::super::trio::{System as _, ThreeNodeBed, is_installed, until};
use super::super::writers::Writers;
use super::{Postgresql, READING, open};

/// No event stops writes for longer.
const LONGEST: Duration = Duration::from_secs(20);
const EVENT: (&str, &str) = ("ALLCLEAR_EVENT_ID", "an-event");

fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Vec<Vec<String>> {
    until(what, || {
        open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
    })
}

fn signal(pid: &str, signal: Signal) {
    kill(Pid::from_raw(pid.parse().unwrap()), signal).unwrap();
}

/// A receiver of the primary's log under this name, as for backups.
fn receiver(stage: &Stage<Postgresql>, name: &str) -> Child {
    let (trio, vm) = (&stage.trio, &stage.trio.vms[0]);
    let to = trio.elsewhere.folder.join("received");
    std::fs::create_dir(&to).unwrap();
    trio.own(&to).unwrap();
    let mut command = trio.command(0, "pg_receivewal").unwrap();
    command.args(["-h", vm.host(), "-p", vm.port(), "-U", "postgres", "-D", to.to_str().unwrap()]);
    let child = command.env("PGAPPNAME", name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a receiver", || {
        let count = ask(trio, 0, "select count(*) from pg_stat_replication where state = 'streaming'");
        if count == [["3"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
    });
    child
}

fn pause(record: &WriteRecord) -> Duration {
    record.longest_gap().unwrap().1
}

/// The archive command never ends, as with a store which does not answer. The server waits for the command after the
/// last checkpoint, and takes no writes any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_hanging_archive_does_not_hold_up_a_switch() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    for setting in ["archive_mode = on", "archive_command = 'sleep 600'"] {
        ask(&stage.trio, 0, &format!("alter system set {setting}"));
    }
    stage.trio.kill(0);
    Postgresql::boot(&stage.trio, 0);
    let writers = Writers::start::<Postgresql>(&stage.trio);
    writers.go_on();
    ask(&stage.trio, 0, "select pg_switch_wal()");
    until("an archiver at work", || {
        let at_work = ask(&stage.trio, 0, "select wait_event from pg_stat_activity where backend_type = 'archiver'");
        if at_work == [["ArchiveCommand"]] { Ok(()) } else { Err(format!("{at_work:?}")) }
    });
    until("standbys that stream", || {
        let count = ask(&stage.trio, 0, "select count(*) from pg_stat_replication where state = 'streaming'");
        if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
    });
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[EVENT]);
    assert_eq!(ended.status, DONE, "{ended:?}");
    assert_ne!(stage.primary(), 0);
    assert!(ended.said.contains("archiver") && ended.said.contains("pid"), "{ended:?}");
    writers.go_on();
    Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[EVENT]);
    let cost = stage.all_is_there(writers);
    assert!(cost.gap < LONGEST, "{:?}", cost.gap);
}

/// Two receivers have one name: the second receiver never confirms, and the server would wait a minute for the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_second_receiver_of_one_name_does_not_hold_up_a_switch() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let mut receiver = receiver(&stage, "db-1");
    let writers = Writers::start::<Postgresql>(&stage.trio);
    writers.go_on();
    signal(&receiver.id().to_string(), Signal::SIGSTOP);
    let told = [EVENT, ("ALLCLEAR_PREFER_VMS", "db-1")];
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &told);
    assert_eq!((ended.status, stage.primary()), (DONE, 1), "{ended:?}");
    Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[EVENT]);
    let cost = stage.all_is_there(writers);
    assert!(cost.gap < LONGEST, "{:?}", cost.gap);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

/// A sender with much to send to a client which does not read would be waited for before the last checkpoint. A sender
/// under the name of the only candidate is found before the stop; a sender under another name is ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_sender_that_cannot_send_is_found_before_the_stop() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let mut receiver = receiver(&stage, "db-1");
    signal(&receiver.id().to_string(), Signal::SIGSTOP);
    ask(&stage.trio, 0, "create table bulk as select repeat('x', 500) from generate_series(1, 100000)");
    let stuck = "select pid from pg_stat_replication where pg_current_wal_lsn() - sent_lsn > 16777216";
    let pids = until("a sender that cannot send", || match ask(&stage.trio, 0, stuck) {
        pids if pids.len() == 1 => Ok(pids),
        pids => Err(format!("{pids:?}")),
    });
    let writers = Writers::start::<Postgresql>(&stage.trio);
    writers.go_on();
    let only = [EVENT, ("ALLCLEAR_AVOID_VMS", "db-2")];
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &only);
    assert_eq!((ended.status, stage.primary()), (BLOCKED, 0), "{ended:?}");
    assert!(ended.said.contains(&format!("walsender (pid {})", pids[0][0])), "{ended:?}");
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[EVENT]);
    assert_eq!((ended.status, stage.primary()), (DONE, 2), "{ended:?}");
    Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[EVENT]);
    let cost = stage.all_is_there(writers);
    assert!(cost.gap < LONGEST, "{:?}", cost.gap);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

/// A process of the server which reacts to nothing, as on a hanging disk, delays the last checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_stop_that_was_in_vain_is_not_tried_again_and_the_reason_names_the_process() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let writers = Writers::start::<Postgresql>(&stage.trio);
    let mut client = open(&stage.trio, 0, READING).unwrap();
    let pid = client.ask("select pg_backend_pid()").unwrap()[0][0].clone();
    signal(&pid, Signal::SIGSTOP);
    writers.go_on();
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[EVENT]);
    assert_eq!((ended.status, stage.primary()), (FAILED, 0), "{ended:?}");
    assert!(ended.said.contains(&format!("(pid {pid})")), "{ended:?}");
    writers.go_on();
    let began = ask(&stage.trio, 0, "select pg_postmaster_start_time()");
    let again = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[EVENT]);
    assert_eq!((again.status, ask(&stage.trio, 0, "select pg_postmaster_start_time()")), (FAILED, began), "{again:?}");
    assert!(again.said.contains("once in vain") && again.said.contains(&format!("(pid {pid})")), "{again:?}");
    // In another event nothing is in the way any more.
    let next = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[("ALLCLEAR_EVENT_ID", "the-next")]);
    assert_eq!(next.status, DONE, "{next:?}");
    Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[EVENT]);
    let cost = stage.all_is_there(writers);
    assert!(cost.gap < LONGEST, "{:?}", cost.gap);
}

/// A standby which receives and does not replay, because a session there holds a lock which a change of a table needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_whose_replay_waits_for_a_session_is_found_before_the_stop() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    ask(&stage.trio, 0, "create table held (n int)");
    let mut session = open(&stage.trio, 1, READING).unwrap();
    until("the table", || session.ask("select from held").map_err(|error| error.to_string()));
    for statement in ["begin isolation level repeatable read", "select from held"] {
        session.ask(statement).unwrap();
    }
    ask(&stage.trio, 1, "alter system set max_standby_streaming_delay = '-1'");
    ask(&stage.trio, 1, "select pg_reload_conf()");
    let writers = Writers::start::<Postgresql>(&stage.trio);
    ask(&stage.trio, 0, "drop table held");
    writers.go_on();
    let began = ask(&stage.trio, 0, "select pg_postmaster_start_time()");
    let only = [EVENT, ("ALLCLEAR_AVOID_VMS", "db-2")];
    let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &only);
    assert_eq!((ended.status, ask(&stage.trio, 0, "select pg_postmaster_start_time()")), (BLOCKED, began), "{ended:?}");
    assert!(ended.said.contains("db-1 does not replay what is written"), "{ended:?}");
    session.ask("rollback").unwrap();
    let gap = pause(&{
        let ended = Hook::run::<Postgresql>(&stage.trio, 0, "failover", &only);
        assert_eq!((ended.status, stage.primary()), (DONE, 1), "{ended:?}");
        Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[EVENT]);
        writers.stop()
    });
    assert!(gap < LONGEST, "{gap:?}");
}

/// A receiver of logical changes, which hangs once connected.
fn hanging_logical_receiver(stage: &Stage<Postgresql>, slot: &str) -> Child {
    let (trio, vm) = (&stage.trio, &stage.trio.vms[0]);
    ask(trio, 0, &format!("select pg_create_logical_replication_slot('{slot}', 'test_decoding')"));
    let mut command = trio.command(0, "pg_recvlogical").unwrap();
    command.args(["-h", vm.host(), "-p", vm.port(), "-U", "postgres", "-d", "postgres", "-S", slot, "--start"]);
    let child = command.args(["-f", "/dev/null"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a receiver", || {
        let active = ask(trio, 0, &format!("select active from pg_replication_slots where slot_name = '{slot}'"));
        if active == [["t"]] { Ok(()) } else { Err(format!("{active:?}")) }
    });
    signal(&child.id().to_string(), Signal::SIGSTOP);
    child
}

/// Change capture by a client which does not read, and by a client which reads and never confirms, as with libraries
/// which do not count the server's keepalives: a primary waits for both without end, and a fast stop needs another
/// party to end the senders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn receivers_of_logical_changes_do_not_hold_up_a_switch() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    ask(&stage.trio, 0, "alter system set wal_level = logical");
    stage.trio.kill(0);
    Postgresql::boot(&stage.trio, 0);
    let mut deaf = hanging_logical_receiver(&stage, "deaf");
    ask(&stage.trio, 0, "create table bulk as select repeat('x', 500) from generate_series(1, 100000)");
    let mut silent = hanging_logical_receiver(&stage, "silent");
    let writers = Writers::start::<Postgresql>(&stage.trio);
    writers.go_on();
    until("a successor", || match Hook::run::<Postgresql>(&stage.trio, 0, "failover", &[EVENT]) {
        ended if ended.status == DONE => Ok(()),
        ended if ended.status == BLOCKED => Err(format!("{ended:?}")),
        ended => panic!("{ended:?}"),
    });
    assert_ne!(stage.primary(), 0);
    writers.go_on();
    Hook::until_done::<Postgresql>(&stage.trio, 0, "restore", &[EVENT]);
    let cost = stage.all_is_there(writers);
    assert!(cost.gap < LONGEST, "{:?}", cost.gap);
    for child in [&mut deaf, &mut silent] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Where the server ends idle sessions, the hooks' sessions are idle while another member writes a checkpoint or stops:
/// a switch would end before its promotion, and each further switch too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_limit_on_idle_sessions_does_not_end_a_switch() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    ask(&stage.trio, 0, "create role hooks login superuser");
    ask(&stage.trio, 0, "alter role hooks set idle_session_timeout = '500ms'");
    // The stopped receiver makes the stop last for a second.
    let mut backup = receiver(&stage, "backup");
    signal(&backup.id().to_string(), Signal::SIGSTOP);
    ask(&stage.trio, 0, "create table bulk as select repeat('x', 500) from generate_series(1, 100000)");
    let writers = Writers::start::<Postgresql>(&stage.trio);
    writers.go_on();
    let told = [EVENT, ("PGUSER", "hooks")];
    Hook::until_done::<Postgresql>(&stage.trio, 0, "failover", &told);
    assert_ne!(stage.primary(), 0);
    for phase in ["restore", "ready", "check"] {
        let ended = Hook::run::<Postgresql>(&stage.trio, 0, phase, &told);
        assert_eq!(ended.status, DONE, "{phase}: {ended:?}");
    }
    stage.all_is_there(writers);
    backup.kill().unwrap();
    backup.wait().unwrap();
}
