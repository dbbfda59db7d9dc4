//! PostgreSQL under Patroni, which keeps what it agrees on in an etcd on a machine of its own.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use allclear::databases::postgresql::client::Connection;

use super::postgresql::Postgresql;
use super::record::Row;
use super::trio::{System, Trio, VMS, Vm, until};

pub(crate) struct Patroni;

/// Patroni's least: a leader that is not heard for this long is replaced.
const TTL: u32 = 20;

impl System for Patroni {
    const NAME: &'static str = "Patroni";
    const TABLES: &'static [&'static str] = &["patroni.toml"];
    const PROGRAMS: &'static [&'static str] = &["patroni", "etcd", "postgres", "initdb", "pg_basebackup", "pg_rewind"];
    const USER: &'static str = "postgres";
    const FAILS_OVER: bool = true;
    type Client = Connection;

    fn found(trio: &Trio) {
        start_etcd(trio);
        for (place, vm) in trio.vms.iter().enumerate() {
            fs::write(vm.folder.join("patroni.yml"), configuration(trio, vm)).unwrap();
            Self::boot(trio, place);
            // The first of them makes the cluster, and the others copy it.
            until("a primary", || Self::primary(trio).ok_or_else(|| "no member takes writes".into()));
        }
        let primary = Self::primary(trio).unwrap();
        let mut primary = Self::connect(trio, primary, Duration::from_secs(20)).unwrap();
        primary.ask("create table rows (client int, number bigint)").unwrap();
        until("two standbys that stream", || {
            let cluster = get(rest(&trio.vms[0]), "/cluster").map_err(|error| error.to_string())?;
            let streaming = cluster.matches("\"streaming\"").count();
            if streaming == VMS.len() - 1 { Ok(()) } else { Err(cluster) }
        });
    }

    fn boot(trio: &Trio, place: usize) {
        trio.spawn(place, "patroni", &["patroni.yml"]).unwrap();
    }

    fn primary(trio: &Trio) -> Option<usize> {
        Postgresql::primary(trio)
    }

    fn settings(trio: &Trio, place: usize) -> Vec<(&'static str, String)> {
        vec![("http", format!("http://{}", rest(&trio.vms[place])))]
    }

    fn connect(trio: &Trio, place: usize, patience: Duration) -> io::Result<Connection> {
        Postgresql::connect(trio, place, patience)
    }

    fn rows(trio: &Trio, place: usize) -> io::Result<Vec<Row>> {
        Postgresql::rows(trio, place)
    }
}

fn rest(vm: &Vm) -> &str {
    &vm.addresses[1]
}

/// What its REST API says.
fn get(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn start_etcd(trio: &Trio) {
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

fn configuration(trio: &Trio, vm: &Vm) -> String {
    let (name, folder) = (vm.name, vm.folder.display());
    let (rest, server, etcd) = (rest(vm), &vm.addresses[0], &trio.elsewhere.addresses[0]);
    format!(
        "scope: tests\nname: {name}\n\
         restapi: {{listen: '{rest}', connect_address: '{rest}'}}\n\
         etcd3: {{hosts: '{etcd}'}}\n\
         bootstrap:\n  \
           dcs:\n    ttl: {TTL}\n    loop_wait: 2\n    retry_timeout: 5\n    \
             postgresql: {{use_pg_rewind: true, parameters: {{shared_buffers: 32MB, wal_keep_size: 1GB}}}}\n  \
           initdb: [{{encoding: UTF8}}, no-sync]\n\
         postgresql:\n  \
           listen: '{server}'\n  connect_address: '{server}'\n  data_dir: '{data}'\n  bin_dir: '{programs}'\n  \
           pgpass: '{folder}/pgpass'\n  basebackup: {{checkpoint: fast}}\n  \
           authentication:\n    superuser: {{username: postgres}}\n    replication: {{username: postgres}}\n    \
             rewind: {{username: postgres}}\n  \
           pg_hba: [local all all trust, host all all 127.0.0.0/8 trust, host replication all 127.0.0.0/8 trust]\n  \
           parameters: {{unix_socket_directories: '{folder}', dynamic_shared_memory_type: mmap}}\n",
        data = vm.data().display(),
        programs = super::trio::find("postgres").unwrap().canonicalize().unwrap().parent().unwrap().display(),
    )
}
