//! Redis replication, alone and under Sentinel.

mod client;
mod switches;

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::time::Duration;

use super::record::Row;
use super::trio::{System, Trio, VMS, until};
use client::Connection;

pub(crate) struct Redis;

pub(crate) struct Sentinel;

/// Whoever asks whether a member is the primary.
const GLANCE: Duration = Duration::from_secs(1);
/// Whoever reads all rows.
const READING: Duration = Duration::from_secs(20);
/// Of a VM's addresses, Sentinel's.
const WATCHER: usize = 1;

impl System for Redis {
    const NAME: &'static str = "Redis";
    const TABLES: &'static [&'static str] = &["redis.toml"];
    const PROGRAMS: &'static [&'static str] = &["redis-server", "python3"];
    const USER: &'static str = "redis";
    type Client = Connection;

    fn found(trio: &Trio) {
        for place in 0..VMS.len() {
            Self::boot(trio, place);
        }
        for command in [&["REPLICAOF", "NO", "ONE"][..], &["CONFIG", "REWRITE"]] {
            until("a primary", || ask(trio, 0, command).map_err(|error| error.to_string()));
        }
        until("two replicas", || match role(trio, 0) {
            Ok(told) if told.len() == 8 && told[2..].chunks(3).all(|replica| replica[2] != "0") => Ok(()),
            told => Err(format!("{told:?}")),
        });
    }

    /// An empty machine gets the configuration that every new one has.
    fn boot(trio: &Trio, place: usize) {
        let settings = trio.vms[place].data().join("redis.conf");
        if !settings.exists() {
            set_up(trio, place);
        }
        trio.spawn(place, "redis-server", &[&settings.display().to_string()]);
    }

    fn promote(trio: &Trio, among: &[usize]) {
        let offset = |place: &usize| role(trio, *place).unwrap().last().unwrap().parse::<i64>().unwrap();
        let best = *among.iter().max_by_key(|place| offset(place)).unwrap();
        ask(trio, best, &["REPLICAOF", "NO", "ONE"]).unwrap();
        for place in among.iter().filter(|place| **place != best) {
            ask(trio, *place, &["REPLICAOF", trio.vms[best].host(), trio.vms[best].port()]).unwrap();
        }
    }

    fn primary(trio: &Trio) -> Option<usize> {
        (0..VMS.len()).find(|place| role(trio, *place).is_ok_and(|told| told[0] == "master"))
    }

    fn settings(trio: &Trio, _place: usize) -> Vec<(&'static str, String)> {
        vec![("MEMBERS", trio.members(0))]
    }

    fn connect(trio: &Trio, place: usize, patience: Duration) -> io::Result<Connection> {
        let mut connection = Connection::open(&trio.vms[place].addresses[0], patience)?;
        let told = connection.ask(&["ROLE"])?;
        if told[0] == "master" { Ok(connection) } else { Err(io::Error::other("a replica")) }
    }

    fn rows(trio: &Trio, place: usize) -> io::Result<Vec<Row>> {
        let rows = ask(trio, place, &["LRANGE", "rows", "0", "-1"])?;
        let row = |text: String| {
            let (client, number) = text.split_once(':').unwrap();
            Row { client: client.parse().unwrap(), number: number.parse().unwrap() }
        };
        Ok(rows.into_iter().map(row).collect())
    }
}

impl System for Sentinel {
    const NAME: &'static str = "Redis with Sentinel";
    const TABLES: &'static [&'static str] = &["redis.toml"];
    const PROGRAMS: &'static [&'static str] = &["redis-server", "redis-sentinel", "python3"];
    const USER: &'static str = "redis";
    const FAILS_OVER: bool = true;
    type Client = Connection;

    fn found(trio: &Trio) {
        Redis::found(trio);
        for place in 0..VMS.len() {
            watch(trio, place);
        }
        for place in 0..VMS.len() {
            until("a quorum of Sentinels that know both replicas", || {
                let mut sentinel = Connection::open(&trio.vms[place].addresses[WATCHER], READING)
                    .map_err(|error| error.to_string())?;
                for (list, count) in [("SENTINELS", 2), ("REPLICAS", 2)] {
                    let told = sentinel.ask(&["SENTINEL", list, "mymaster"]).map_err(|error| error.to_string())?;
                    let known = told.iter().filter(|word| *word == "runid").count();
                    if known != count {
                        return Err(format!("it knows {known} {list}"));
                    }
                }
                Ok(())
            });
        }
    }

    fn boot(trio: &Trio, place: usize) {
        Redis::boot(trio, place);
        watch(trio, place);
    }

    /// What Sentinel says is one when it says so itself.
    fn primary(trio: &Trio) -> Option<usize> {
        let place = (0..VMS.len()).find_map(|place| named_primary(trio, place, GLANCE).ok())?;
        let place = trio.vms.iter().position(|vm| vm.addresses[0] == place)?;
        role(trio, place).is_ok_and(|told| told[0] == "master").then_some(place)
    }

    fn settings(trio: &Trio, _place: usize) -> Vec<(&'static str, String)> {
        vec![("MEMBERS", trio.members(0)), ("SENTINELS", trio.members(WATCHER))]
    }

    /// Asks the Sentinel of this member where to go.
    fn connect(trio: &Trio, place: usize, patience: Duration) -> io::Result<Connection> {
        let address = named_primary(trio, place, patience)?;
        let mut connection = Connection::open(&address, patience)?;
        let told = connection.ask(&["ROLE"])?;
        if told[0] == "master" { Ok(connection) } else { Err(io::Error::other("a replica")) }
    }

    fn rows(trio: &Trio, place: usize) -> io::Result<Vec<Row>> {
        Redis::rows(trio, place)
    }
}

fn ask(trio: &Trio, place: usize, words: &[&str]) -> io::Result<Vec<String>> {
    Connection::open(&trio.vms[place].addresses[0], READING)?.ask(words)
}

/// `master`, offset, and address and offset of each replica; or `slave`, address, state and offset.
fn role(trio: &Trio, place: usize) -> io::Result<Vec<String>> {
    Connection::open(&trio.vms[place].addresses[0], GLANCE)?.ask(&["ROLE"])
}

fn named_primary(trio: &Trio, place: usize, patience: Duration) -> io::Result<String> {
    let mut sentinel = Connection::open(&trio.vms[place].addresses[WATCHER], patience)?;
    let told = sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"])?;
    Ok(told.join(":"))
}

/// No machine begins as a primary.
fn set_up(trio: &Trio, place: usize) {
    let (vm, other) = (&trio.vms[place], &trio.vms[usize::from(place == 0)]);
    let text = format!(
        "bind {host}\nport {port}\nreplica-announce-ip {host}\ndir {data}\nsave \"\"\nappendonly yes\n\
         repl-backlog-size 64mb\nrepl-diskless-sync-delay 0\nreplicaof {to} {to_port}\n",
        host = vm.host(),
        port = vm.port(),
        data = vm.data().display(),
        to = other.host(),
        to_port = other.port(),
    );
    fs::create_dir_all(vm.data()).unwrap();
    fs::write(vm.data().join("redis.conf"), text).unwrap();
    own(trio, &[&vm.data(), &vm.data().join("redis.conf")]);
}

fn watch(trio: &Trio, place: usize) {
    let vm = &trio.vms[place];
    let (settings, (host, port)) = (vm.folder.join("sentinel.conf"), vm.addresses[WATCHER].split_once(':').unwrap());
    if !settings.exists() {
        let text = format!(
            "bind {host}\nport {port}\nsentinel announce-ip {host}\ndir {folder}\n\
             sentinel monitor mymaster {to} {to_port} 2\nsentinel down-after-milliseconds mymaster 5000\n",
            folder = vm.folder.display(),
            to = trio.vms[0].host(),
            to_port = trio.vms[0].port(),
        );
        fs::write(&settings, text).unwrap();
        own(trio, &[&settings]);
    }
    trio.spawn(place, "redis-sentinel", &[&settings.display().to_string()]);
}

fn own(trio: &Trio, paths: &[&std::path::Path]) {
    let Some(user) = &trio.user else { return };
    for path in paths {
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
    }
}
