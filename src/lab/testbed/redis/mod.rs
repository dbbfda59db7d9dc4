//! Redis replication.

pub mod client;

use std::fs;
use std::io;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::record::Row;
use super::three_nodes::{ThreeNodeBed, VMS};
use super::{DatabaseClient, GLANCE, READING, System};
use client::RedisConnection;

pub const REDIS: System = System {
    name: "Redis",
    tables: "redis.toml",
    programs: &["redis-server", "python3"],
    user: "redis",
    found,
    boot,
    settings: |trio, place| Ok(vec![("MEMBERS", trio.members(0)), ("STATE_DIR", state(trio, place))]),
    connect: |trio, place, patience| Ok(Box::new(connect(trio, place, patience)?) as Box<dyn DatabaseClient>),
    rows,
};

/// The folder for the hooks' persistent state.
pub fn state(trio: &ThreeNodeBed, place: usize) -> String {
    trio.vms[place].folder.join("state").display().to_string()
}

fn found(trio: &ThreeNodeBed) -> anyhow::Result<()> {
    for place in 0..VMS.len() {
        boot(trio, place)?;
    }
    for command in [&["REPLICAOF", "NO", "ONE"][..], &["CONFIG", "REWRITE"]] {
        trio.until("a primary", || Ok(ask(trio, 0, command)?))?;
    }
    trio.until("two replicas", || match role(trio, 0)? {
        told if told.len() == 8 && told[2..].chunks(3).all(|replica| replica[2] != "0") => Ok(()),
        told => bail!("{told:?}"),
    })
}

/// Starts the member's server; an empty machine gets the configuration of a new machine.
fn boot(trio: &ThreeNodeBed, place: usize) -> anyhow::Result<()> {
    let settings = trio.vms[place].data().join("redis.conf");
    if !settings.exists() {
        set_up(trio, place)?;
    }
    trio.spawn(place, "redis-server", &[&settings.display().to_string()])
}

/// A connection to the server at this address, if the server takes writes.
pub fn connect_to(address: &str, patience: Duration) -> io::Result<RedisConnection> {
    let mut connection = RedisConnection::open(address, patience)?;
    if is_primary(&connection.ask(&["ROLE"])?) { Ok(connection) } else { Err(io::Error::other("a replica")) }
}

pub fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<RedisConnection> {
    connect_to(&trio.vms[place].addresses[0], patience)
}

pub fn primary(trio: &ThreeNodeBed) -> Option<usize> {
    (0..VMS.len()).find(|place| role(trio, *place).is_ok_and(|told| is_primary(&told)))
}

fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
    let told = ask(trio, place, &["LRANGE", "rows", "0", "-1"])?;
    let row = |text: String| {
        let (client, number) = text.split_once(':').ok_or_else(|| io::Error::other(format!("{text} is no row")))?;
        Row::read(client, number)
    };
    told.into_iter().map(row).collect()
}

pub fn ask(trio: &ThreeNodeBed, place: usize, words: &[&str]) -> io::Result<Vec<String>> {
    RedisConnection::open(&trio.vms[place].addresses[0], READING)?.ask(words)
}

/// `master`, offset, and address and offset of each replica; or `slave`, address, state and offset.
pub fn role(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<String>> {
    RedisConnection::open(&trio.vms[place].addresses[0], GLANCE)?.ask(&["ROLE"])
}

fn is_primary(told: &[String]) -> bool {
    told.first().is_some_and(|role| role == "master")
}

/// No machine begins as a primary.
pub fn set_up(trio: &ThreeNodeBed, place: usize) -> anyhow::Result<()> {
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
    let settings = vm.data().join("redis.conf");
    let written = fs::create_dir_all(vm.data()).and_then(|()| fs::write(&settings, text));
    written.with_context(|| format!("cannot write {}", settings.display()))?;
    trio.own(&vm.data())?;
    trio.own(&settings)
}
