//! Several processes of `PgBouncer` at one address (`so_reuseport`): each is paused and pointed, or nothing is begun.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::super::hook::{DONE, FAILED, Hook, UNDO};
use super::super::killed::killed_at;
use super::super::record::Row;
use super::super::stage::Stage;
use super::super::trio::{System, ThreeNodeBed, find, is_installed, until};
use super::super::writers::Writers;
use super::pooled::{CONFIG, Pooled, connect};
use super::{PostgresConnection, Postgresql};

/// Folders in which each process works, and has its socket.
const PROCESSES: [&str; 2] = ["one", "two"];

/// Clients know one address, behind which there are two processes.
struct Shared;

/// As `Shared`, with calls of the pooler's own hooks.
struct Drained;

fn shared(trio: &ThreeNodeBed) -> (&str, &str) {
    trio.elsewhere.addresses[1].split_once(':').unwrap()
}

/// The address of each process alone.
fn own_addresses(trio: &ThreeNodeBed) -> [String; 2] {
    PROCESSES.map(|name| format!("{}:{}", trio.elsewhere.folder.join(name).display(), shared(trio).1))
}

fn start(trio: &ThreeNodeBed, name: &str) {
    let folder = trio.elsewhere.folder.join(name);
    fs::create_dir(&folder).unwrap();
    let (host, port) = shared(trio);
    let common = format!(
        "[pgbouncer]\nlisten_addr = {host}\nlisten_port = {port}\nunix_socket_dir = {}\nso_reuseport = 1\nauth_type = any\n\
         admin_users = postgres\nstats_users = looker\npool_mode = transaction\nserver_login_retry = 1\n",
        folder.display()
    );
    fs::write(folder.join("common.ini"), common).unwrap();
    for vm in &trio.vms {
        let database = format!("postgres = host={} port={} user=postgres", vm.host(), vm.port());
        let text = format!("%include common.ini\n[databases]\n{database}\n");
        fs::write(folder.join(CONFIG.replace("{vm}", vm.name)), text).unwrap();
    }
    trio.own(&folder).unwrap();
    let first = CONFIG.replace("{vm}", trio.vms[0].name);
    let command = format!("cd {} && exec {} {first}", folder.display(), find("pgbouncer").unwrap().display());
    trio.spawn_on(&trio.elsewhere, "sh", &["-c", &command]).unwrap();
}

impl System for Shared {
    const NAME: &'static str = "PostgreSQL behind two processes of PgBouncer";
    const TABLES: &'static [&'static str] = &["postgresql.toml"];
    const PROGRAMS: &'static [&'static str] = Pooled::PROGRAMS;
    const USER: &'static str = Postgresql::USER;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        Postgresql::found(trio);
        for name in PROCESSES {
            start(trio, name);
            let socket = trio.elsewhere.folder.join(name).join(format!(".s.PGSQL.{}", shared(trio).1));
            until("a process of a pooler", || if socket.exists() { Ok(()) } else { Err("it has no socket".into()) });
        }
        until("a pooler", || connect(&trio.elsewhere).map_err(|error| error.to_string()));
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        Postgresql::boot(trio, place);
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        let own = [("POOLERS", own_addresses(trio).join(" ")), ("POOLER_CONFIG", CONFIG.into())];
        [Postgresql::settings(trio, place), own.into()].concat()
    }

    fn connect(trio: &ThreeNodeBed, _place: usize, _patience: Duration) -> io::Result<PostgresConnection> {
        connect(&trio.elsewhere)
    }

    fn takes_writes(trio: &ThreeNodeBed, place: usize) -> bool {
        Postgresql::takes_writes(trio, place)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        Postgresql::rows(trio, place)
    }
}

impl System for Drained {
    const NAME: &'static str = "Two processes of PgBouncer";
    const TABLES: &'static [&'static str] = &["pgbouncer.toml"];
    const PROGRAMS: &'static [&'static str] = Pooled::PROGRAMS;
    const USER: &'static str = Postgresql::USER;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        Shared::found(trio);
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        Shared::boot(trio, place);
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Shared::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, _place: usize) -> Vec<(&'static str, String)> {
        let own = own_addresses(trio).join(" ");
        vec![("POOLER", own), ("PGUSER", "postgres".into()), ("LEAVE_SECONDS", "0.1".into())]
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<PostgresConnection> {
        Shared::connect(trio, place, patience)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        Shared::rows(trio, place)
    }
}

/// The number of clients, of 20, which are let in by any process.
fn let_in(trio: &ThreeNodeBed) -> usize {
    let asks = || connect(&trio.elsewhere).and_then(|mut client| client.ask("select 1"));
    (0..20).filter(|_| asks().is_ok()).count()
}

/// The hooks of the pooler's own VM need each process, too: one process would go on to let clients in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_drain_that_is_killed_at_any_point_is_done_again_or_taken_back_for_each_process() {
    if !is_installed::<Drained>() {
        return;
    }
    let stage = Stage::<Drained>::bare().await;
    let trio = &stage.trio;
    for (name, value, told) in [
        ("POOLER", trio.elsewhere.addresses[1].as_str(), "so_reuseport"),
        ("PGUSER", "looker", "looker is no admin"),
        ("PGUSER", "stranger", "stranger is no admin"),
        ("POOLER_DATABASES", "nothing", "has no database nothing"),
    ] {
        let ended = Hook::run::<Drained>(trio, 0, "check", &[(name, value)]);
        assert_eq!(ended.status, FAILED, "{name} {value}: {ended:?}");
        assert!(ended.said.contains(told), "{name} {value}: {ended:?}");
    }
    let ended = Hook::run::<Drained>(trio, 0, "check", &[]);
    assert_eq!(ended.status, DONE, "{ended:?}");
    for point in 1.. {
        let ended = Hook::killed::<Drained>(trio, 0, "drain", point, &[]);
        let Some(at) = killed_at(&ended) else {
            assert_eq!(ended.status, DONE, "{ended:?}");
            println!("a drain has {} points", point - 1);
            break;
        };
        println!("{at}");
        if point % 2 == 0 {
            Hook::until_done::<Drained>(trio, 0, "drain", &[]);
            assert_eq!(let_in(trio), 0);
        }
        Hook::until_done::<Drained>(trio, 0, "drain", &[UNDO]);
        assert_eq!(let_in(trio), 20);
    }
    assert_eq!(let_in(trio), 0);
    Hook::until_done::<Drained>(trio, 0, "restore", &[]);
    assert_eq!(let_in(trio), 20);
}

/// A connection to an address shared by several processes reaches any of the processes; a pause of one process leaves
/// the other processes at work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn each_process_at_one_address_is_paused_and_pointed() {
    if !is_installed::<Shared>() {
        return;
    }
    let stage = Stage::<Shared>::bare().await;
    let writers = Writers::start::<Shared>(&stage.trio);
    writers.go_on();
    let shared = stage.trio.elsewhere.addresses[1].clone();
    // The address leads to an unknown one of the two processes.
    for phase in ["check", "failover"] {
        let ended = Hook::run::<Shared>(&stage.trio, 0, phase, &[("POOLERS", &shared)]);
        assert_eq!((ended.status, stage.primary()), (FAILED, 0), "{phase}: {ended:?}");
        assert!(ended.said.contains("so_reuseport") && ended.said.contains(&shared), "{phase}: {ended:?}");
    }
    for phase in ["check", "failover", "restore"] {
        let ended = Hook::run::<Shared>(&stage.trio, 0, phase, &[]);
        assert_eq!(ended.status, DONE, "{phase}: {ended:?}");
    }
    assert_ne!(stage.primary(), 0);
    for _ in 0..20 {
        let answer = connect(&stage.trio.elsewhere).and_then(|mut client| client.ask("select pg_is_in_recovery()"));
        assert_eq!(answer.unwrap(), [["f"]]);
    }
    writers.go_on();
    let cost = stage.all_is_there(writers);
    assert_eq!(cost.errors, 0);
}

/// Each process needs a Unix socket of its own, and a process is added without its name in the hooks' settings; or a
/// process is named twice, by a link to its folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_process_that_is_not_named_is_missed() {
    if !is_installed::<Shared>() {
        return;
    }
    let stage = Stage::<Shared>::bare().await;
    let [one, _] = own_addresses(&stage.trio);
    let link = stage.trio.elsewhere.folder.join("link");
    std::os::unix::fs::symlink(stage.trio.elsewhere.folder.join(PROCESSES[0]), &link).unwrap();
    let twice = format!("{one} {}:{}", link.display(), shared(&stage.trio).1);
    for named in [&one, &twice] {
        for phase in ["check", "failover"] {
            let ended = Hook::run::<Shared>(&stage.trio, 0, phase, &[("POOLERS", named)]);
            assert_eq!((ended.status, stage.primary()), (FAILED, 0), "{phase}: {ended:?}");
            assert!(ended.said.contains("2 processes of a pooler listen at port"), "{phase}: {ended:?}");
        }
        for phase in ["check", "drain"] {
            let ended = Hook::run::<Drained>(&stage.trio, 0, phase, &[("POOLER", named)]);
            assert!(ended.status == FAILED && ended.said.contains("1 of them is named"), "{phase}: {ended:?}");
        }
    }
    assert_eq!(let_in(&stage.trio), 20);
}

/// Programs name themselves by their command line, which may be a script of several lines, and the console lists these
/// names from 1.18 on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_client_whose_name_has_line_ends_and_bars_is_drained_as_others_are() {
    if !is_installed::<Drained>() {
        return;
    }
    let stage = Stage::<Drained>::bare().await;
    let name = "ruby -e 'a\r\nfalse end-of-answer\nputs \"1,2|3\"\n'";
    let facts = format!("user\0postgres\0database\0postgres\0application_name\0{name}\0\0");
    let length = u32::try_from(facts.len() + 8).unwrap().to_be_bytes();
    let mut client = TcpStream::connect(&stage.trio.elsewhere.addresses[1]).unwrap();
    client.write_all(&[&length[..], &196_608_u32.to_be_bytes(), facts.as_bytes()].concat()).unwrap();
    client.read_exact(&mut [0]).unwrap();
    let ended = Hook::run::<Drained>(&stage.trio, 0, "drain", &[]);
    assert!(ended.status == DONE && ended.said.contains("1 clients did not leave"), "{ended:?}");
    assert_eq!(let_in(&stage.trio), 0);
    Hook::until_done::<Drained>(&stage.trio, 0, "restore", &[]);
    assert_eq!(let_in(&stage.trio), 20);
}
