//! A standby cluster: its leader takes no writes and follows a primary elsewhere, and has to leave its VM all the same.

use std::time::Duration;

use allclear::databases::Client as _;
use allclear::databases::postgresql::client::Connection;
use serde_json::{Value, json};

use super::super::record::Row;
use super::super::trio::{System as _, Trio, VMS, find, is_installed, until, vms_of};
use super::adapter::{run, until_done};
use super::rest::{leader, members, until_cluster};
use super::{Newest, Old, Patroni, Setup, found_members};

struct Standby<S>(std::marker::PhantomData<S>);

impl<S: Setup> Setup for Standby<S> {
    const NAME: &'static str = S::NAME;
    const PROGRAMS: &'static [&'static str] = S::PROGRAMS;

    /// A primary without Patroni.
    fn prepare(trio: &Trio) {
        let vm = &trio.elsewhere;
        let (host, port) = vm.addresses[2].rsplit_once(':').unwrap();
        let program = |name: &str| find(name).unwrap().display().to_string();
        let script = format!(
            "{} -D upstream -U postgres -A trust --no-sync -E UTF8 && exec {} -D upstream -c listen_addresses={host} -c \
             port={port} -c unix_socket_directories={} -c wal_log_hints=on -c wal_keep_size=1GB -c shared_buffers=32MB \
             -c dynamic_shared_memory_type=mmap",
            program("initdb"),
            program("postgres"),
            vm.folder.display(),
        );
        trio.spawn_on(vm, "sh", &["-c", &script]).unwrap();
        until("a primary elsewhere", || upstream(trio).map(drop).map_err(|error| error.to_string()));
        upstream(trio).unwrap().ask("create table rows (client int, number bigint)").unwrap();
    }

    fn shared(trio: &Trio) -> String {
        let (host, port) = trio.elsewhere.addresses[2].rsplit_once(':').unwrap();
        format!("    standby_cluster: {{host: '{host}', port: {port}}}\n")
    }
}

fn upstream(trio: &Trio) -> std::io::Result<Connection> {
    Connection::open(&trio.elsewhere.addresses[2], Duration::from_secs(20))
}

fn place_of(member: &Value) -> usize {
    VMS.iter().position(|vm| member["name"] == *vm).unwrap()
}

fn the_leader_of_a_standby_cluster_is_moved<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let trio = vms_of::<Patroni<Standby<S>>>();
    found_members::<Standby<S>>(&trio, || {
        until_cluster(&trio, "a leader of a standby cluster", |cluster| {
            leader(cluster).is_some_and(|leader| leader["role"] == "standby_leader")
        });
    });
    let follows = |member: &&Value| member["lag"].as_u64() == Some(0);
    until_cluster(&trio, "two that follow it", |cluster| members(cluster).filter(follows).count() == 2);
    let ended = run::<Standby<S>>(&trio, 0, "check", &json!({}));
    assert!(ended.status == Some(0) && ended.said.contains("a standby cluster of 3"), "{ended:?}");
    for number in 1..=2 {
        let cluster = until_cluster(&trio, "a leader", |cluster| leader(cluster).is_some());
        let from = place_of(leader(&cluster).unwrap());
        let to = (from + 1) % VMS.len();
        until_done::<Standby<S>>(&trio, from, "failover", &json!({ "prefer_vms": [VMS[to]] }));
        let cluster = until_cluster(&trio, "another leader", |cluster| leader(cluster).is_some());
        assert_eq!(place_of(leader(&cluster).unwrap()), to, "{cluster}");
        upstream(&trio).unwrap().write(Row { client: 0, number }).unwrap();
        until_done::<Standby<S>>(&trio, from, "restore", &json!({}));
        for place in 0..VMS.len() {
            until("what was written elsewhere", || {
                let rows = Patroni::<Standby<S>>::rows(&trio, place).map_err(|error| error.to_string())?;
                if rows.len() == usize::try_from(number).unwrap() { Ok(()) } else { Err(format!("{rows:?}")) }
            });
        }
    }
}

#[test]
#[ignore = "all of them take half an hour"]
fn newest() {
    the_leader_of_a_standby_cluster_is_moved::<Newest>();
}

#[test]
#[ignore = "all of them take half an hour"]
fn old() {
    the_leader_of_a_standby_cluster_is_moved::<Old>();
}
