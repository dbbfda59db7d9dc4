//! A server as set up by Debian's packages: the configuration is outside of the data, and `pg_ctlcluster` starts the
//! server.

use std::fs;
use std::io;
use std::time::Duration;

use allclear::testbed::postgresql::wait_for_the_end;

use super::super::hook::{DONE, Hook};
use super::super::record::Row;
use super::super::stage::Stage;
use super::super::trio::{System, ThreeNodeBed, VMS, is_installed, until};
use super::rewinds::{After, DISCARD, all_have, go_down};
use super::{PostgresConnection, Postgresql, READING, open};

struct Packaged;

/// The variable of `pg_createcluster`; its value is a folder of the VM.
const ROOT: &str = "PG_CLUSTER_CONF_ROOT";

fn root(trio: &ThreeNodeBed, place: usize) -> String {
    trio.vms[place].folder.join("etc").display().to_string()
}

fn version(trio: &ThreeNodeBed) -> String {
    let said = trio.run(0, "postgres", &["--version"]).unwrap();
    said.split([' ', '.']).find(|word| word.parse::<u32>().is_ok()).unwrap().to_owned()
}

/// Runs a shell command on the VM at `place`, which finds the clusters there.
fn shell(trio: &ThreeNodeBed, place: usize, command: &str) -> Result<String, String> {
    let command = format!("mkdir -p {0} && export {ROOT}={0} && {command}", root(trio, place));
    trio.run(place, "sh", &["-c", &command]).map_err(|error| format!("{error:#}"))
}

fn create(trio: &ThreeNodeBed, place: usize) {
    let (vm, version) = (&trio.vms[place], version(trio));
    let (data, log, folder) = (vm.data(), vm.log(), &vm.folder);
    let paths = format!("-d {} -l {} -s {}", data.display(), log.display(), folder.display());
    let more = "-- -A trust -U postgres --no-sync -E UTF8";
    shell(trio, place, &format!("pg_createcluster {version} main {paths} -p {} {more}", vm.port())).unwrap();
    let config = folder.join("etc").join(&version).join("main");
    let settings = format!(
        "listen_addresses = '{}'\nexternal_pid_file = ''\nwal_log_hints = on\nwal_keep_size = 1GB\nshared_buffers = 32MB\n\
         dynamic_shared_memory_type = mmap\n",
        vm.host()
    );
    fs::write(config.join("conf.d/allclear.conf"), settings).unwrap();
    let access = "local all all trust\nhost all all 127.0.0.0/8 trust\nhost replication all 127.0.0.0/8 trust\n";
    fs::write(config.join("pg_hba.conf"), access).unwrap();
    for file in ["conf.d/allclear.conf", "pg_hba.conf"] {
        trio.own(&config.join(file)).unwrap();
    }
}

impl System for Packaged {
    const NAME: &'static str = "PostgreSQL of Debian's packages";
    const TABLES: &'static [&'static str] = Postgresql::TABLES;
    const PROGRAMS: &'static [&'static str] = &["postgres", "psql", "python3", "pg_createcluster", "pg_ctlcluster"];
    const USER: &'static str = Postgresql::USER;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        for place in 0..VMS.len() {
            create(trio, place);
            if place == 0 {
                Self::boot(trio, 0);
                let mut primary = until("a primary", || open(trio, 0, READING).map_err(|error| error.to_string()));
                primary.ask("create table rows (client int, number bigint)").unwrap();
                continue;
            }
            let (vm, data) = (&trio.vms[0], trio.vms[place].data().display().to_string());
            let name = trio.vms[place].name;
            trio.lose_data(place).unwrap();
            let source = format!("host={} port={} user=postgres application_name={name}", vm.host(), vm.port());
            trio.run(place, "pg_basebackup", &["-D", &data, "-d", &source, "-c", "fast", "-R", "--no-sync"]).unwrap();
            Self::boot(trio, place);
        }
        until("two standbys that stream", || {
            let asked = open(trio, 0, READING).and_then(|mut server| {
                server.ask("select count(*) from pg_stat_replication where state = 'streaming'")
            });
            let count = asked.map_err(|error| error.to_string())?;
            if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
        });
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        if trio.vms[place].data().join("PG_VERSION").exists() {
            wait_for_the_end(trio, place).unwrap();
            shell(trio, place, &format!("pg_ctlcluster {} main start", version(trio))).unwrap();
        }
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        let (version, root) = (version(trio), root(trio, place));
        let own = [
            ("START", format!("pg_ctlcluster {version} main start")),
            ("CONFIG_FILE", format!("{root}/{version}/main/postgresql.conf")),
            (ROOT, root),
        ];
        [Postgresql::settings(trio, place), own.into()].concat()
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
async fn a_server_of_debians_packages_moves_crashes_and_comes_back() {
    if !is_installed::<Packaged>() {
        return;
    }
    let stage = Stage::<Packaged>::bare().await;
    for (place, phase) in [(0, "check"), (1, "check"), (0, "failover"), (0, "restore"), (0, "check")] {
        let ended = Hook::run::<Packaged>(&stage.trio, place, phase, &[]);
        assert_eq!(ended.status, DONE, "{phase} on {place}: {ended:?}");
    }
    for (round, after) in [(1, After::Crash), (2, After::Loss)] {
        let place = go_down(&stage, round, after);
        let ended = Hook::run::<Packaged>(&stage.trio, place, "restore", DISCARD);
        assert_eq!(ended.status, DONE, "{ended:?}");
        all_have(&stage.trio, round);
    }
    let wrong = [("START", "pg_ctlcluster 15 another start")];
    let ended = Hook::run::<Packaged>(&stage.trio, 0, "check", &wrong);
    assert!(ended.said.contains("see pg_lsclusters"), "{ended:?}");
}
