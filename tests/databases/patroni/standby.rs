//! A standby cluster: its leader takes no writes and follows a primary elsewhere, and has to leave its VM regardless.

use std::time::Duration;

use allclear::testbed::DatabaseClient as _;
use allclear::testbed::postgresql::client::PostgresConnection;
use serde_json::{Value, json};

use super::super::hook::{BLOCKED, DONE, FAILED};
use super::super::record::Row;
use super::super::trio::{System as _, ThreeNodeBed, VMS, find, is_installed, until, vms_of};
use super::adapter::{run, until_done};
use super::rest::{configure, leader, members, until_cluster};
use super::{Newest, Old, Patroni, Setup, found_members};

struct Standby<S, const SYNCHRONOUS: bool>(std::marker::PhantomData<S>);

impl<S: Setup, const SYNCHRONOUS: bool> Setup for Standby<S, SYNCHRONOUS> {
    const NAME: &'static str = S::NAME;
    const PROGRAMS: &'static [&'static str] = S::PROGRAMS;

    /// A primary without Patroni.
    fn prepare(trio: &ThreeNodeBed) {
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

    fn shared(trio: &ThreeNodeBed) -> String {
        let (host, port) = trio.elsewhere.addresses[2].rsplit_once(':').unwrap();
        format!("    standby_cluster: {{host: '{host}', port: {port}}}\n    synchronous_mode: {SYNCHRONOUS}\n")
    }
}

fn upstream(trio: &ThreeNodeBed) -> std::io::Result<PostgresConnection> {
    PostgresConnection::open(&trio.elsewhere.addresses[2], Duration::from_secs(20))
}

fn place_of(member: &Value) -> usize {
    VMS.iter().position(|vm| member["name"] == *vm).unwrap()
}

/// Three members which follow a primary elsewhere, one of the three directly.
fn followers<S: Setup>() -> ThreeNodeBed {
    let trio = vms_of::<Patroni<S>>();
    found_members::<S>(&trio, || {
        until_cluster(&trio, "a leader of a standby cluster", |cluster| {
            leader(cluster).is_some_and(|leader| leader["role"] == "standby_leader")
        });
    });
    let follows = |member: &&Value| member["lag"].as_u64() == Some(0);
    until_cluster(&trio, "two that follow it", |cluster| members(cluster).filter(follows).count() == 2);
    trio
}

fn the_leader_of_a_standby_cluster_is_moved<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let trio = followers::<S>();
    // `/cluster` shows new members as of Patroni's last loop.
    until("a check that finds nothing", || match run::<S>(&trio, 0, "check", &json!({})) {
        ended if ended.status == DONE && ended.said.contains("a standby cluster of 3") => Ok(()),
        ended => Err(ended.said),
    });
    for number in 1..=2 {
        let cluster = until_cluster(&trio, "a leader", |cluster| leader(cluster).is_some());
        let from = place_of(leader(&cluster).unwrap());
        let to = (from + 1) % VMS.len();
        until_done::<S>(&trio, from, "failover", &json!({ "prefer_vms": [VMS[to]] }));
        let cluster = until_cluster(&trio, "another leader", |cluster| leader(cluster).is_some());
        assert_eq!(place_of(leader(&cluster).unwrap()), to, "{cluster}");
        upstream(&trio).unwrap().write(Row { client: 0, number }).unwrap();
        until_done::<S>(&trio, from, "restore", &json!({}));
        for place in 0..VMS.len() {
            until("what was written elsewhere", || {
                let rows = Patroni::<S>::rows(&trio, place).map_err(|error| error.to_string())?;
                if rows.len() == usize::try_from(number).unwrap() { Ok(()) } else { Err(format!("{rows:?}")) }
            });
        }
    }
}

/// Where replication is to be synchronous, Patroni before 3.2 refuses each candidate of a standby cluster with 412, for
/// no candidate is synchronous. Later versions ignore the setting, which is copied from the primary's cluster with all
/// other settings.
fn it_is_moved_when_replication_is_not_to_be_synchronous<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let trio = followers::<S>();
    let finds = "progress: Patroni 3.0.2: a standby cluster of 3 with synchronous replication\nsynchronous_mode is on in a \
                 standby cluster, and Patroni 3.0.2 refuses a switchover there";
    until("a check that finds nothing else", || match run::<S>(&trio, 0, "check", &json!({})) {
        ended if ended.status == FAILED && ended.said.starts_with(finds) && !ended.said.contains("; ") => Ok(()),
        ended => Err(ended.said),
    });
    let from = place_of(leader(&until_cluster(&trio, "a leader", |cluster| leader(cluster).is_some())).unwrap());
    let ended = run::<S>(&trio, from, "failover", &json!({}));
    let refusals = ended.said.matches("candidate name does not match with sync_standby").count();
    assert!(ended.status == BLOCKED && refusals == 2, "{ended:?}");
    configure(&trio, "{\"synchronous_mode\": null}");
    until_done::<S>(&trio, from, "failover", &json!({}));
    let cluster = until_cluster(&trio, "another leader", |cluster| leader(cluster).is_some());
    assert_ne!(place_of(leader(&cluster).unwrap()), from, "{cluster}");
}

#[test]
#[ignore = "all of them take half an hour"]
fn newest() {
    the_leader_of_a_standby_cluster_is_moved::<Standby<Newest, false>>();
}

#[test]
#[ignore = "all of them take half an hour"]
fn old() {
    the_leader_of_a_standby_cluster_is_moved::<Standby<Old, false>>();
}

#[test]
#[ignore = "all of them take half an hour"]
fn newest_with_the_setting_for_synchronous_replication() {
    the_leader_of_a_standby_cluster_is_moved::<Standby<Newest, true>>();
}

#[test]
#[ignore = "all of them take half an hour"]
fn old_with_the_setting_for_synchronous_replication() {
    it_is_moved_when_replication_is_not_to_be_synchronous::<Standby<Old, true>>();
}
