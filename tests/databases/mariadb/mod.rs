//! `MariaDB` with GTID replication, asynchronous.

mod bounds;
mod check;
mod client;
mod copies;
mod former;
mod killed;
mod lost;
mod replication;
mod rights;
mod switches;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::time::Duration;

use super::hook::{Ended, Hook};
use super::record::Row;
use super::stage::Stage;
use super::trio::{DatabaseVm, System, ThreeNodeBed, VMS, until};
use client::Connection;

pub(crate) struct MariaDb;

/// The options of a member's configuration file, as in `deploy/hooks`, without `server_id`.
const REQUIRED: &[&str] = &[
    "--log-bin=binlog",
    "--log-slave-updates=1",
    "--gtid-strict-mode=1",
    "--slave-parallel-threads=4",
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
    "--read-only=1",
];

const OTHERS: &[&str] = &[
    "--relay-log=relay",
    "--skip-name-resolve",
    "--innodb-log-file-size=16M",
    "--innodb-buffer-pool-size=32M",
    "--innodb-fast-shutdown=0",
];

/// Statements which users run once, on the primary.
const ACCOUNTS: &str = "SET GLOBAL read_only = 0;
CREATE USER allclear@'%' IDENTIFIED BY 'of the hooks';
GRANT READ_ONLY ADMIN, CONNECTION ADMIN, PROCESS, BINLOG MONITOR, SLAVE MONITOR, REPLICATION MASTER ADMIN,
  REPLICATION SLAVE ADMIN, RELOAD, SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO allclear@'%';
GRANT CREATE ON allclear.* TO allclear@'%';
CREATE USER replication@'%' IDENTIFIED BY 'of replicas';
GRANT REPLICATION SLAVE ON *.* TO replication@'%';
CREATE USER app@'%';
CREATE DATABASE app;
GRANT ALL ON app.* TO app@'%';
CREATE TABLE app.records (client INT, number BIGINT);";

const OPTION_FILE: &str = "[client]
user = allclear
password = 'of the hooks'

[replication]
user = replication
password = 'of replicas'
";

/// The timeout of a query for the primary.
const GLANCE: Duration = Duration::from_secs(1);
/// The timeout of a read of all rows.
const READING: Duration = Duration::from_secs(20);

impl System for MariaDb {
    const NAME: &'static str = "MariaDB";
    const TABLES: &'static [&'static str] = &["mariadb.toml"];
    const PROGRAMS: &'static [&'static str] = &["mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump"];
    const USER: &'static str = "mysql";
    /// The configuration file sets read-only.
    const COMES_BACK_CLOSED: bool = true;
    type Client = Connection;

    fn found(trio: &ThreeNodeBed) {
        for place in 0..VMS.len() {
            let vm = &trio.vms[place];
            fs::write(option_file(vm), OPTION_FILE).unwrap();
            fs::set_permissions(option_file(vm), Permissions::from_mode(0o600)).unwrap();
            if let Some(user) = &trio.user {
                chown(option_file(vm), Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
            }
            start(trio, place);
        }
        by_socket(trio, 0, ACCOUNTS);
        for place in 1..VMS.len() {
            follow(trio, place, 0);
        }
        for place in 1..VMS.len() {
            let position = by_socket(trio, 0, "SELECT @@gtid_binlog_pos");
            let waited = by_socket(trio, place, &format!("SELECT MASTER_GTID_WAIT('{}', 60)", position.trim()));
            assert_eq!(waited.trim(), "0", "{place}");
        }
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        start(trio, place);
    }

    /// Promotes the member with the highest received position.
    fn promote(trio: &ThreeNodeBed, among: &[usize]) {
        let received = |place: &usize| {
            let position = by_socket(trio, *place, "STOP SLAVE IO_THREAD; SELECT @@gtid_current_pos");
            position.trim().rsplit('-').next().unwrap().parse::<u64>().unwrap()
        };
        let best = among.iter().copied().max_by_key(received).unwrap();
        by_socket(trio, best, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        (0..VMS.len()).find(|place| Self::connect(trio, *place, GLANCE).is_ok())
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        let vm = &trio.vms[place];
        vec![
            ("MEMBERS", trio.members(0)),
            ("STATE_DIR", vm.folder.join("state").display().to_string()),
            ("OPTION_FILE", option_file(vm)),
            ("SOCKET", socket(vm)),
            // A machine with many tests at once is slow.
            ("PATIENCE_SECONDS", "20".into()),
            ("MAX_LAG_MS", "10000".into()),
            ("CATCH_UP_MS", "10000".into()),
        ]
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Connection> {
        let mut connection = connect(trio, place, patience)?;
        let is_open = connection.ask("SELECT @@read_only")? == [["0"]];
        if is_open { Ok(connection) } else { Err(io::Error::other("read-only")) }
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        let rows = connect(trio, place, READING)?.ask("SELECT client, number FROM records")?;
        let row = |row: Vec<String>| Row { client: row[0].parse().unwrap(), number: row[1].parse().unwrap() };
        Ok(rows.into_iter().map(row).collect())
    }
}

/// Runs a hook, and returns the exit status and the output.
fn call(stage: &Stage<MariaDb>, place: usize, phase: &str, more: &[(&str, &str)]) -> (Option<i32>, String) {
    let Ended { status, said } = Hook::run::<MariaDb>(&stage.trio, place, phase, more);
    (status, said)
}

fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Connection> {
    Connection::open(&trio.vms[place].addresses[0], patience)
}

fn option_file(vm: &DatabaseVm) -> String {
    vm.folder.join("hooks.cnf").display().to_string()
}

fn socket(vm: &DatabaseVm) -> String {
    vm.folder.join("sock").display().to_string()
}

/// Starts the server, without data there on the data which the package makes. Returns when the server answers.
fn start(trio: &ThreeNodeBed, place: usize) {
    start_with(trio, place, &[]);
}

/// As `start`, with further options.
fn start_with(trio: &ThreeNodeBed, place: usize, more: &[&str]) {
    let vm = &trio.vms[place];
    let data = format!("--datadir={}", vm.data().display());
    // The test's own folder may be closed to the servers' user.
    let temporary = format!("--tmpdir={}", vm.folder.display());
    if !vm.data().exists() {
        let own = nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap();
        let socket_user = format!("--auth-root-socket-user={}", trio.user.as_ref().unwrap_or(&own).name);
        let quickly = ["--no-defaults", "--skip-test-db", "--innodb-log-file-size=16M", "--innodb-flush-method=nosync"];
        trio.run(place, "mariadb-install-db", &[&quickly[..], &[&data, &temporary, &socket_user]].concat()).unwrap();
    }
    let local = [
        data,
        temporary,
        format!("--socket={}", socket(vm)),
        format!("--pid-file={}", vm.folder.join("pid").display()),
        format!("--bind-address={}", vm.host()),
        format!("--port={}", vm.port()),
        format!("--server-id={}", place + 1),
    ];
    let local: Vec<_> = local.iter().map(String::as_str).collect();
    trio.spawn(place, "mariadbd", &[&["--no-defaults"][..], REQUIRED, OTHERS, &local, more].concat()).unwrap();
    until("a server that answers", || {
        let mut command = trio.command(place, "mariadb").unwrap();
        let output = command.args(["--no-defaults", "-S", &socket(vm), "-e", "SELECT 1"]).output().unwrap();
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    });
}

/// Runs statements over the socket, as the servers' own user.
fn by_socket(trio: &ThreeNodeBed, place: usize, statements: &str) -> String {
    asked_by_socket(trio, place, statements).unwrap()
}

/// As `by_socket`, while a hook may end all connections.
fn asked_by_socket(trio: &ThreeNodeBed, place: usize, statements: &str) -> anyhow::Result<String> {
    let socket = socket(&trio.vms[place]);
    let arguments = ["--no-defaults", "-S", &socket, "--batch", "--skip-column-names", "-e", statements];
    trio.run(place, "mariadb", &arguments)
}

fn follow(trio: &ThreeNodeBed, place: usize, primary: usize) {
    let vm = &trio.vms[primary];
    let (host, port) = (vm.host(), vm.port());
    let statements = format!(
        "CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, MASTER_USER = 'replication', \
         MASTER_PASSWORD = 'of replicas', MASTER_USE_GTID = slave_pos; START SLAVE"
    );
    by_socket(trio, place, &statements);
}
