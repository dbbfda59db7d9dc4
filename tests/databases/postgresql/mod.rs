//! PostgreSQL with streaming replication, asynchronous.

pub(crate) mod client;
mod pooled;
mod switches;
mod synchronous;

use std::fs;
use std::io;
use std::time::Duration;

use super::record::Row;
use super::trio::{System, Trio, VMS, find, until};
use client::Connection;

pub(crate) struct Postgresql;

/// A server that is killed leaves nothing outside of its folder. Nothing that is local to a VM stands in the data
/// directory: a copy of that is another member.
const SETTINGS: &str = "
include '../server.conf'
wal_level = replica
wal_log_hints = on
max_wal_senders = 10
wal_keep_size = 1GB
hot_standby = on
shared_buffers = 32MB
dynamic_shared_memory_type = mmap
";

/// Whoever asks whether a member is the primary.
const GLANCE: Duration = Duration::from_secs(1);
/// Whoever reads all rows.
const READING: Duration = Duration::from_secs(20);

impl System for Postgresql {
    const NAME: &'static str = "PostgreSQL";
    const TABLES: &'static [&'static str] = &["postgresql.toml"];
    const PROGRAMS: &'static [&'static str] = &["postgres", "initdb", "pg_basebackup", "psql"];
    const USER: &'static str = "postgres";
    type Client = Connection;

    fn found(trio: &Trio) {
        for place in 0..VMS.len() {
            write_local_settings(trio, place);
        }
        let data = |place: usize| trio.vms[place].data().display().to_string();
        trio.run(0, "initdb", &["-D", &data(0), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]);
        let append = |file: &str, text: &str| {
            let path = trio.vms[0].data().join(file);
            fs::write(&path, fs::read_to_string(&path).unwrap() + text).unwrap();
        };
        append("postgresql.conf", SETTINGS);
        Self::boot(trio, 0);
        let mut primary = until("a primary", || connect(trio, 0, READING).map_err(|error| error.to_string()));
        primary.ask("create table rows (client int, number bigint)").unwrap();
        for place in 1..VMS.len() {
            let (vm, data) = (&trio.vms[0], data(place));
            let from = ["-h", vm.host(), "-p", vm.port(), "-U", "postgres"];
            trio.run(place, "pg_basebackup", &[&["-D", &data, "-c", "fast", "--no-sync"], &from[..]].concat());
            fs::write(trio.vms[place].data().join("standby.signal"), "").unwrap();
            Self::boot(trio, place);
        }
        until("two standbys that stream", || {
            let streaming = "select count(*) from pg_stat_replication where state = 'streaming'";
            let count = primary.ask(streaming).map_err(|error| error.to_string())?;
            if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
        });
    }

    fn boot(trio: &Trio, place: usize) {
        let data = trio.vms[place].data();
        if data.join("PG_VERSION").exists() {
            trio.spawn(place, "postgres", &["-D", &data.display().to_string()]);
        }
    }

    /// The one that has received most.
    fn promote(trio: &Trio, among: &[usize]) {
        let position = "select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'";
        let received = |place: &usize| {
            let ask = || connect(trio, *place, READING)?.ask(position);
            until("a standby's position", || ask().map_err(|error| error.to_string()))[0][0].parse::<u64>().unwrap()
        };
        let best = among.iter().copied().max_by_key(received).unwrap();
        connect(trio, best, READING).unwrap().ask("select pg_promote()").unwrap();
    }

    fn primary(trio: &Trio) -> Option<usize> {
        (0..VMS.len()).find(|place| Self::connect(trio, *place, GLANCE).is_ok())
    }

    fn settings(trio: &Trio, place: usize) -> Vec<(&'static str, String)> {
        let (vm, program) = (&trio.vms[place], find("pg_ctl").unwrap());
        let (program, data, log) = (program.display(), vm.data(), vm.log());
        vec![
            ("START", format!("{program} -D {} -W -l {} start", data.display(), log.display())),
            ("MEMBERS", trio.members(0)),
            ("STATE_DIR", vm.folder.join("state").display().to_string()),
            ("PGDATA", data.display().to_string()),
            ("PGUSER", "postgres".into()),
            ("PRIMARY_CONNINFO", "user=postgres".into()),
        ]
    }

    fn connect(trio: &Trio, place: usize, patience: Duration) -> io::Result<Connection> {
        let connection = connect(trio, place, patience)?;
        if connection.is_standby { Err(io::Error::other("a standby")) } else { Ok(connection) }
    }

    fn rows(trio: &Trio, place: usize) -> io::Result<Vec<Row>> {
        let rows = connect(trio, place, READING)?.ask("select client, number from rows")?;
        let row = |row: Vec<String>| Row { client: row[0].parse().unwrap(), number: row[1].parse().unwrap() };
        Ok(rows.into_iter().map(row).collect())
    }
}

fn connect(trio: &Trio, place: usize, patience: Duration) -> io::Result<Connection> {
    Connection::open(&trio.vms[place].addresses[0], patience)
}

/// The address, and all members to stream from: whoever is the primary is found.
fn write_local_settings(trio: &Trio, place: usize) {
    let vm = &trio.vms[place];
    let list = |of: fn(&super::trio::Vm) -> &str| trio.vms.iter().map(of).collect::<Vec<_>>().join(",");
    let (hosts, ports) = (list(|vm| vm.host()), list(|vm| vm.port()));
    let text = format!(
        "listen_addresses = '{host}'\nport = {port}\nunix_socket_directories = '{folder}'\n\
         primary_conninfo = 'host={hosts} port={ports} user=postgres application_name={name} \
         target_session_attrs=read-write connect_timeout=2'\n",
        host = vm.host(),
        port = vm.port(),
        folder = vm.folder.display(),
        name = vm.name,
    );
    fs::write(vm.folder.join("server.conf"), text).unwrap();
}
