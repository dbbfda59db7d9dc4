//! Redis replication, alone and under Sentinel.

mod answers;
mod checks;
mod former;
mod restarts;
mod switches;

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use allclear::testbed::REDIS;
use allclear::testbed::redis::client::RedisConnection;
use allclear::testbed::redis::{self, ask, role};

use super::record::Row;
use super::trio::{System, ThreeNodeBed, VMS, until};

pub(crate) struct Redis;

pub(crate) struct Sentinel;

/// The timeout of a query for the primary.
const GLANCE: Duration = Duration::from_secs(1);
/// The timeout of a query to a Sentinel.
const READING: Duration = Duration::from_secs(20);
/// The index of Sentinel's address among a VM's addresses.
const WATCHER: usize = 1;

impl System for Redis {
    const NAME: &'static str = REDIS.name;
    const TABLES: &'static [&'static str] = &[REDIS.tables];
    const PROGRAMS: &'static [&'static str] = REDIS.programs;
    const USER: &'static str = REDIS.user;
    type Client = RedisConnection;

    fn found(trio: &ThreeNodeBed) {
        (REDIS.found)(trio).unwrap();
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        until_it_listens(&trio.vms[place].addresses[0], || (REDIS.boot)(trio, place).unwrap());
    }

    /// Redis acknowledges a write before the file has it while the disk is busy, and the file loses it with the process.
    fn sync_each_write(trio: &ThreeNodeBed) {
        for place in 0..VMS.len() {
            ask(trio, place, &["CONFIG", "SET", "appendfsync", "always"]).unwrap();
            ask(trio, place, &["CONFIG", "REWRITE"]).unwrap();
        }
    }

    fn promote(trio: &ThreeNodeBed, among: &[usize]) {
        let offset = |place: &usize| role(trio, *place).unwrap().last().unwrap().parse::<i64>().unwrap();
        let best = *among.iter().max_by_key(|place| offset(place)).unwrap();
        ask(trio, best, &["REPLICAOF", "NO", "ONE"]).unwrap();
        for place in among.iter().filter(|place| **place != best) {
            ask(trio, *place, &["REPLICAOF", trio.vms[best].host(), trio.vms[best].port()]).unwrap();
        }
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        redis::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        (REDIS.settings)(trio, place).unwrap()
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<RedisConnection> {
        redis::connect(trio, place, patience)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        (REDIS.rows)(trio, place)
    }
}

impl System for Sentinel {
    const NAME: &'static str = "Redis with Sentinel";
    const TABLES: &'static [&'static str] = &["redis.toml"];
    const PROGRAMS: &'static [&'static str] = &["redis-server", "redis-sentinel", "python3"];
    const USER: &'static str = "redis";
    const FAILS_OVER: bool = true;
    type Client = RedisConnection;

    fn found(trio: &ThreeNodeBed) {
        Redis::found(trio);
        for place in 0..VMS.len() {
            watch(trio, place);
        }
        for place in 0..VMS.len() {
            until("a quorum of Sentinels that know both replicas", || {
                let mut sentinel = RedisConnection::open(&trio.vms[place].addresses[WATCHER], READING)
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

    fn boot(trio: &ThreeNodeBed, place: usize) {
        Redis::boot(trio, place);
        watch(trio, place);
    }

    fn sync_each_write(trio: &ThreeNodeBed) {
        Redis::sync_each_write(trio);
    }

    /// Sentinel's primary counts when the member itself reports the role.
    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        let place = (0..VMS.len()).find_map(|place| named_primary(trio, place, GLANCE).ok())?;
        let place = trio.vms.iter().position(|vm| vm.addresses[0] == place)?;
        role(trio, place).is_ok_and(|told| told[0] == "master").then_some(place)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        [Redis::settings(trio, place), vec![("SENTINELS", trio.members(WATCHER))]].concat()
    }

    fn takes_writes(trio: &ThreeNodeBed, place: usize) -> bool {
        Redis::takes_writes(trio, place)
    }

    /// Asks the Sentinel of this member for the primary.
    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<RedisConnection> {
        let address = named_primary(trio, place, patience)?;
        redis::connect_to(&address, patience)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        Redis::rows(trio, place)
    }
}

fn named_primary(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<String> {
    let mut sentinel = RedisConnection::open(&trio.vms[place].addresses[WATCHER], patience)?;
    let told = sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"])?;
    Ok(told.join(":"))
}

fn watch(trio: &ThreeNodeBed, place: usize) {
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
        trio.own(&settings).unwrap();
    }
    let start = || trio.spawn(place, "redis-sentinel", &[&settings.display().to_string()]).unwrap();
    until_it_listens(&vm.addresses[WATCHER], start);
}

/// A killed server may hold its port for a moment. The server's service would start the server again, too.
fn until_it_listens(address: &str, start: impl Fn()) {
    until("a server that answers", || {
        start();
        let began = Instant::now();
        while began.elapsed() < GLANCE {
            let answer = RedisConnection::open(address, GLANCE).and_then(|mut server| server.ask(&["PING"]));
            if answer.as_ref().map_or_else(|error| error.to_string().contains("LOADING"), |_| true) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("nothing answers at {address}"))
    });
}
