//! PostgreSQL with streaming replication, asynchronous.

pub mod client;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::record::Row;
use super::three_nodes::{DatabaseVm, ThreeNodeBed, VMS};
use super::{DatabaseClient, GLANCE, READING, Settings, System, programs};
use client::PostgresConnection;

pub const POSTGRESQL: System = System {
    name: "PostgreSQL",
    tables: "postgresql.toml",
    programs: &["postgres", "initdb", "pg_basebackup", "pg_ctl", "psql", "python3"],
    user: "postgres",
    found,
    boot,
    settings,
    connect: |trio, place, patience| Ok(Box::new(connect(trio, place, patience)?) as Box<dyn DatabaseClient>),
    rows,
};

/// A killed server leaves nothing outside of its folder. The data directory has no settings of the VM, since a copy
/// of the data directory becomes another member.
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

fn found(trio: &ThreeNodeBed) -> anyhow::Result<()> {
    for vm in &trio.vms {
        write_local_settings(trio, vm).with_context(|| format!("cannot set up {}", vm.name))?;
    }
    let data = |place: usize| trio.vms[place].data().display().to_string();
    trio.run(0, "initdb", &["-D", &data(0), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"])?;
    let settings = trio.vms[0].data().join("postgresql.conf");
    let added = File::options().append(true).open(&settings).and_then(|mut file| file.write_all(SETTINGS.as_bytes()));
    added.with_context(|| format!("cannot add to {}", settings.display()))?;
    boot(trio, 0)?;
    let mut primary = trio.until("a primary", || Ok(open(trio, 0, READING)?))?;
    primary.ask("create table rows (client int, number bigint)")?;
    for place in 1..VMS.len() {
        let (vm, data) = (&trio.vms[0], data(place));
        let from = ["-h", vm.host(), "-p", vm.port(), "-U", "postgres"];
        trio.run(place, "pg_basebackup", &[&["-D", &data, "-c", "fast", "--no-sync"], &from[..]].concat())?;
        let signal = trio.vms[place].data().join("standby.signal");
        fs::write(&signal, "")?;
        trio.own(&signal)?;
        boot(trio, place)?;
    }
    trio.until("two standbys that stream", || {
        let count = primary.ask("select count(*) from pg_stat_replication where state = 'streaming'")?;
        ensure!(count == [["2"]], "{count:?} stream");
        Ok(())
    })
}

/// Starts the member's server; does nothing where the data is lost.
fn boot(trio: &ThreeNodeBed, place: usize) -> anyhow::Result<()> {
    let data = trio.vms[place].data();
    wait_for_the_end(trio, place)?;
    if data.join("PG_VERSION").exists() {
        trio.spawn(place, "postgres", &["-D", &data.display().to_string()])?;
    }
    Ok(())
}

/// Waits until a killed server's pid is free. A killed server keeps its pid until the parent process has waited for
/// the server, and a new server takes the old lock files for the locks of a running server. After the boot of a VM no
/// pid of an earlier process exists.
pub fn wait_for_the_end(trio: &ThreeNodeBed, place: usize) -> anyhow::Result<()> {
    let lock = fs::read_to_string(trio.vms[place].data().join("postmaster.pid")).unwrap_or_default();
    let process = Path::new("/proc").join(lock.lines().next().unwrap_or("none"));
    trio.until("the end of a server that was killed", || {
        let is_dead = fs::read_link(process.join("cwd")).is_err();
        ensure!(!(is_dead && process.exists()), "{} is still there", process.display());
        Ok(())
    })
}

fn settings(trio: &ThreeNodeBed, place: usize) -> anyhow::Result<Settings> {
    let (vm, program) = (&trio.vms[place], programs::find("pg_ctl").context("pg_ctl is not installed")?);
    let (program, data, log) = (program.display(), vm.data(), vm.log());
    Ok(vec![
        ("START", format!("{program} -D {} -W -l {} start", data.display(), log.display())),
        ("MEMBERS", trio.members(0)),
        ("STATE_DIR", vm.folder.join("state").display().to_string()),
        ("PGDATA", data.display().to_string()),
        ("CONFIG_FILE", data.join("postgresql.conf").display().to_string()),
        ("PGUSER", "postgres".into()),
        ("PRIMARY_CONNINFO", "user=postgres".into()),
    ])
}

/// Connects to the member, a primary or a standby.
pub fn open(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<PostgresConnection> {
    PostgresConnection::open(&trio.vms[place].addresses[0], patience)
}

pub fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<PostgresConnection> {
    let connection = open(trio, place, patience)?;
    if connection.is_standby { Err(io::Error::other("a standby")) } else { Ok(connection) }
}

pub fn primary(trio: &ThreeNodeBed) -> Option<usize> {
    (0..VMS.len()).find(|place| connect(trio, *place, GLANCE).is_ok())
}

fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
    let told = open(trio, place, READING)?.ask("select client, number from rows")?;
    let row = |told: Vec<String>| match told.as_slice() {
        [client, number] => Row::read(client, number),
        _ => Err(io::Error::other(format!("{told:?} is no row"))),
    };
    told.into_iter().map(row).collect()
}

/// Writes the address, and all members as sources of replication: the standby finds the primary among the members.
fn write_local_settings(trio: &ThreeNodeBed, vm: &DatabaseVm) -> io::Result<()> {
    let list = |of: fn(&DatabaseVm) -> &str| trio.vms.iter().map(of).collect::<Vec<_>>().join(",");
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
    fs::write(vm.folder.join("server.conf"), text)
}
