//! PostgreSQL under Patroni, with an etcd on a machine of its own as Patroni's store.

mod adapter;
mod checks;
mod killed;
mod proxy;
mod rest;
mod secured;
mod standby;
mod switches;

use std::fs;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use allclear::testbed::postgresql::client::PostgresConnection;

use super::postgresql::Postgresql;
use super::record::Row;
use super::trio::{DatabaseVm, System, ThreeNodeBed, VMS, until};

/// Patroni's minimum: a leader which is not heard for this long is replaced.
const TTL: u32 = 20;

/// The setup of Patroni on the VMs.
pub(crate) trait Setup: Send + Sync + 'static {
    const NAME: &'static str;
    /// The program of Patroni, and all other programs which must be installed.
    const PROGRAMS: &'static [&'static str] = NEWEST;
    /// The modes of synchronous replication, by their setting.
    const SYNCHRONOUS: &'static [&'static str] = &["on", "quorum"];

    /// Preparations before the members are made.
    fn prepare(_trio: &ThreeNodeBed) {}

    /// The name of the member on this VM.
    fn member(vm: &str) -> String {
        vm.to_owned()
    }

    /// The address at which members find each other's REST API.
    fn advertised(vm: &DatabaseVm) -> &str {
        rest(vm)
    }

    /// Keys of `restapi`, and further lines of a member's own configuration.
    fn own(_trio: &ThreeNodeBed, _vm: &DatabaseVm) -> (String, String) {
        Default::default()
    }

    /// Keys shared by all members.
    fn shared(_trio: &ThreeNodeBed) -> String {
        String::new()
    }

    /// Keys of the hooks.
    fn settings(_trio: &ThreeNodeBed, vm: &DatabaseVm) -> Vec<(&'static str, String)> {
        vec![("http", format!("http://{}", Self::advertised(vm)))]
    }
}

const NEWEST: &[&str] = &["patroni", "etcd", "postgres", "initdb", "pg_basebackup", "pg_rewind"];

/// The newest Patroni.
pub(crate) struct Newest;

impl Setup for Newest {
    const NAME: &'static str = "Patroni";
}

/// Patroni 3.0.2, which is Debian 12's.
pub(crate) struct Old;

impl Setup for Old {
    const NAME: &'static str = "Patroni 3.0";
    const PROGRAMS: &'static [&'static str] =
        &["patroni-3.0", "etcd", "postgres", "initdb", "pg_basebackup", "pg_rewind"];
    const SYNCHRONOUS: &'static [&'static str] = &["on"];
}

pub(crate) struct Patroni<S = Newest>(PhantomData<S>);

impl<S: Setup> System for Patroni<S> {
    const NAME: &'static str = S::NAME;
    const TABLES: &'static [&'static str] = &["patroni.toml"];
    const PROGRAMS: &'static [&'static str] = S::PROGRAMS;
    const USER: &'static str = "postgres";
    const FAILS_OVER: bool = true;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        found_members::<S>(trio, || {
            until("a primary", || Self::primary(trio).ok_or_else(|| "no member takes writes".into()));
        });
        let primary = Self::primary(trio).unwrap();
        let mut primary = Self::connect(trio, primary, Duration::from_secs(20)).unwrap();
        primary.ask("create table rows (client int, number bigint)").unwrap();
        until("two standbys that stream", || {
            // A member's first copy streams, too, and is no standby yet.
            let count = primary.ask(
                "select count(*) from pg_stat_replication where state = 'streaming' \
                 and application_name <> 'pg_basebackup'",
            );
            let count = count.map_err(|error| error.to_string())?;
            if count == [["2"]] { Ok(()) } else { Err(format!("{count:?} stream")) }
        });
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        trio.spawn(place, S::PROGRAMS[0], &["patroni.yml"]).unwrap();
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        S::settings(trio, &trio.vms[place])
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<PostgresConnection> {
        Postgresql::connect(trio, place, patience)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        Postgresql::rows(trio, place)
    }
}

/// The first member makes the cluster, and the other members copy it.
fn found_members<S: Setup>(trio: &ThreeNodeBed, until_there_is_a_leader: impl Fn()) {
    start_etcd(trio);
    S::prepare(trio);
    for place in 0..VMS.len() {
        fs::write(trio.vms[place].folder.join("patroni.yml"), configuration::<S>(trio, place)).unwrap();
        Patroni::<S>::boot(trio, place);
        until_there_is_a_leader();
    }
}

fn rest(vm: &DatabaseVm) -> &str {
    &vm.addresses[1]
}

fn start_etcd(trio: &ThreeNodeBed) {
    let vm = &trio.elsewhere;
    let (clients, peers) = (format!("http://{}", vm.addresses[0]), format!("http://{}", vm.addresses[1]));
    let arguments = [
        ["--data-dir", "etcd"],
        ["--listen-client-urls", &clients],
        ["--advertise-client-urls", &clients],
        ["--listen-peer-urls", &peers],
        ["--initial-advertise-peer-urls", &peers],
        ["--initial-cluster", &format!("default={peers}")],
    ];
    trio.spawn_on(vm, "etcd", arguments.as_flattened()).unwrap();
}

fn configuration<S: Setup>(trio: &ThreeNodeBed, place: usize) -> String {
    let vm = &trio.vms[place];
    let (name, folder) = (S::member(vm.name), vm.folder.display());
    let (rest, advertised, server, etcd) =
        (rest(vm), S::advertised(vm), &vm.addresses[0], &trio.elsewhere.addresses[0]);
    let (of_rest, own) = S::own(trio, vm);
    format!(
        "scope: tests\nname: {name}\n{own}\
         restapi: {{listen: '{rest}', connect_address: '{advertised}'{of_rest}}}\n\
         etcd3: {{hosts: '{etcd}'}}\n\
         bootstrap:\n  \
           dcs:\n    ttl: {TTL}\n    loop_wait: 2\n    retry_timeout: 5\n    \
             postgresql: {{use_pg_rewind: true, parameters: {{shared_buffers: 32MB, wal_keep_size: 1GB}}}}\n{shared}  \
           initdb: [{{encoding: UTF8}}, no-sync]\n\
         postgresql:\n  \
           listen: '{server}'\n  connect_address: '{server}'\n  data_dir: '{data}'\n  bin_dir: '{programs}'\n  \
           pgpass: '{folder}/pgpass'\n  basebackup: {{checkpoint: fast}}\n  \
           authentication:\n    superuser: {{username: postgres}}\n    replication: {{username: postgres}}\n    \
             rewind: {{username: postgres}}\n  \
           pg_hba: [local all all trust, host all all 127.0.0.0/8 trust, host replication all 127.0.0.0/8 trust]\n  \
           parameters: {{unix_socket_directories: '{folder}', dynamic_shared_memory_type: mmap}}\n",
        shared = S::shared(trio),
        data = vm.data().display(),
        programs = super::trio::find("postgres").unwrap().canonicalize().unwrap().parent().unwrap().display(),
    )
}
