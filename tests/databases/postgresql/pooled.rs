//! PostgreSQL servers behind `PgBouncer`: on a machine which no event takes, and on the VMs themselves.

use std::fs;
use std::io;
use std::time::Duration;

use super::super::record::Row;
use super::super::stage::{Kind, Stage};
use super::super::trio::{DatabaseVm, System, ThreeNodeBed, find, is_installed, until};
use super::super::writers::Writers;
use super::{PostgresConnection, Postgresql};

const PROGRAMS: &[&str] = &["postgres", "initdb", "pg_basebackup", "pg_ctl", "psql", "python3", "pgbouncer"];
/// The index of the pooler's address among a VM's addresses.
const POOLER: usize = 1;
/// A client's timeout: a client which waits in a pooler for a primary has received no answer yet.
const PATIENCE: Duration = Duration::from_mins(1);

/// The file of each primary, in the working folder of the pooler.
pub(super) const CONFIG: &str = "primary-{vm}.ini";

/// Clients know one pooler, which stays.
pub(crate) struct Pooled;

/// Clients know three poolers, each of which goes away with its VM.
struct Beside;

impl System for Pooled {
    const NAME: &'static str = "PostgreSQL behind PgBouncer";
    const TABLES: &'static [&'static str] = Postgresql::TABLES;
    const PROGRAMS: &'static [&'static str] = PROGRAMS;
    const USER: &'static str = Postgresql::USER;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        Postgresql::found(trio);
        set_up(trio, &trio.elsewhere);
        start(trio, &trio.elsewhere);
        until("a pooler", || connect(&trio.elsewhere).map_err(|error| error.to_string()));
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        Postgresql::boot(trio, place);
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        let own = [("POOLERS", trio.elsewhere.addresses[POOLER].clone()), ("POOLER_CONFIG", CONFIG.into())];
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

impl System for Beside {
    const NAME: &'static str = "PostgreSQL beside PgBouncer";
    const TABLES: &'static [&'static str] = &["postgresql.toml", "pgbouncer.toml"];
    const PROGRAMS: &'static [&'static str] = PROGRAMS;
    const USER: &'static str = Postgresql::USER;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        Postgresql::found(trio);
        for vm in &trio.vms {
            set_up(trio, vm);
            start(trio, vm);
            until("a pooler", || connect(vm).map_err(|error| error.to_string()));
        }
    }

    /// The pooler is pointed before its start, as by its service.
    fn boot(trio: &ThreeNodeBed, place: usize) {
        Postgresql::boot(trio, place);
        start(trio, &trio.vms[place]);
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        let poolers: Vec<_> = trio.vms.iter().map(|vm| vm.addresses[POOLER].clone()).collect();
        let own = [
            ("POOLERS", poolers.join(" ")),
            ("POOLER_CONFIG", CONFIG.into()),
            ("POOLER", trio.vms[place].addresses[POOLER].clone()),
            ("LEAVE_SECONDS", "1".into()),
        ];
        [Postgresql::settings(trio, place), own.into()].concat()
    }

    fn connect(trio: &ThreeNodeBed, place: usize, _patience: Duration) -> io::Result<PostgresConnection> {
        connect(&trio.vms[place])
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        Postgresql::rows(trio, place)
    }
}

pub(super) fn connect(vm: &DatabaseVm) -> io::Result<PostgresConnection> {
    PostgresConnection::open(&vm.addresses[POOLER], PATIENCE)
}

/// Writes the common part of a pooler's configurations, and one configuration for each primary.
fn set_up(trio: &ThreeNodeBed, vm: &DatabaseVm) {
    let (host, port) = vm.addresses[POOLER].split_once(':').unwrap();
    let common = format!(
        "[pgbouncer]\nlisten_addr = {host}\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\nadmin_users = postgres\n\
         pool_mode = transaction\nserver_login_retry = 1\n"
    );
    fs::write(vm.folder.join("common.ini"), common).unwrap();
    for primary in &trio.vms {
        let (host, port) = (primary.host(), primary.port());
        let text = format!("%include common.ini\n[databases]\npostgres = host={host} port={port} user=postgres\n");
        fs::write(vm.folder.join(CONFIG.replace("{vm}", primary.name)), text).unwrap();
    }
}

/// Starts the pooler as its service does: the pooler is pointed before the start.
fn start(trio: &ThreeNodeBed, vm: &DatabaseVm) {
    let settings = [("MEMBERS", trio.members(0)), ("PGUSER", "postgres".into()), ("POOLER_CONFIG", CONFIG.into())];
    let settings = settings.map(|(name, value)| format!("{name}='{value}'")).join(" ");
    let point = format!("{settings} CONFIG=pgbouncer.ini python3 hooks/pgbouncer.py point");
    let start = format!("exec {} pgbouncer.ini", find("pgbouncer").unwrap().display());
    trio.spawn_on(vm, "sh", &["-c", &format!("{point} && {start}")]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_the_primary_moves_and_no_client_sees_an_error() {
    crate::left_out::long!();
    if !is_installed::<Pooled>() {
        return;
    }
    let mut stage = Stage::<Pooled>::with_allclear().await;
    let writers = Writers::start::<Pooled>(&stage.trio);
    for _ in 0..2 {
        let primary = stage.primary();
        stage.event(Kind::Reboot, &[primary], Duration::from_secs(2)).await;
        writers.go_on();
    }
    let cost = stage.all_is_there(writers);
    println!("{}: {} errors, the longest pause was {:?}", Pooled::NAME, cost.errors, cost.gap);
    assert_eq!(cost.errors, 0);
}

/// The clients of the pooler on the primary's VM are sent to another pooler, and all three let clients in after the
/// event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_pooler_that_goes_away_with_the_primary_lets_its_clients_go_to_another() {
    if !is_installed::<Beside>() {
        return;
    }
    let mut stage = Stage::<Beside>::with_allclear().await;
    let writers = Writers::start::<Beside>(&stage.trio);
    let primary = stage.primary();
    stage.event(Kind::Reboot, &[primary], Duration::from_secs(2)).await;
    for vm in &stage.trio.vms {
        let answer = connect(vm).and_then(|mut client| client.ask("select pg_is_in_recovery()"));
        assert_eq!(answer.unwrap(), [["f"]], "{}", vm.name);
    }
    stage.all_is_there(writers);
}
