//! PostgreSQL with streaming replication, asynchronous.

mod absent;
mod checks;
mod elsewhere;
mod former;
mod names;
mod notice;
mod packaged;
mod pooled;
mod processes;
mod reasons;
mod rewinds;
mod stops;
mod strays;
mod switches;
mod synchronous;
mod tablespaces;

use std::io;
use std::time::Duration;

use allclear::testbed::POSTGRESQL;
use allclear::testbed::postgresql::client::PostgresConnection;
use allclear::testbed::postgresql::{self, open};

pub(crate) use self::pooled::Pooled;
pub(crate) use self::synchronous::Synchronous;
use super::record::Row;
use super::stage::Stage;
use super::trio::{System, ThreeNodeBed, is_installed, until};

pub(crate) struct Postgresql;

/// The timeout of a query for a standby's position.
const READING: Duration = Duration::from_secs(20);

impl System for Postgresql {
    const NAME: &'static str = POSTGRESQL.name;
    const TABLES: &'static [&'static str] = &[POSTGRESQL.tables];
    const PROGRAMS: &'static [&'static str] = POSTGRESQL.programs;
    const USER: &'static str = POSTGRESQL.user;
    type Client = PostgresConnection;

    fn found(trio: &ThreeNodeBed) {
        (POSTGRESQL.found)(trio).unwrap();
    }

    fn boot(trio: &ThreeNodeBed, place: usize) {
        (POSTGRESQL.boot)(trio, place).unwrap();
    }

    /// Promotes the standby with the highest received position.
    fn promote(trio: &ThreeNodeBed, among: &[usize]) {
        let position = "select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'";
        let received = |place: &usize| {
            let ask = || open(trio, *place, READING)?.ask(position);
            until("a standby's position", || ask().map_err(|error| error.to_string()))[0][0].parse::<u64>().unwrap()
        };
        let best = among.iter().copied().max_by_key(received).unwrap();
        open(trio, best, READING).unwrap().ask("select pg_promote()").unwrap();
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        postgresql::primary(trio)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        (POSTGRESQL.settings)(trio, place).unwrap()
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<PostgresConnection> {
        postgresql::connect(trio, place, patience)
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        (POSTGRESQL.rows)(trio, place)
    }
}

/// Thousands of such segments would keep every server of the machine from starting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_leaves_no_shared_memory() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let lock = std::fs::read_to_string(stage.trio.vms[0].data().join("postmaster.pid")).unwrap();
    // The seventh line: the key and the id of the segment.
    let id = lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap();
    let is_there = || {
        let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments.lines().any(|segment| segment.split_whitespace().nth(1) == Some(id))
    };
    assert!(is_there());
    stage.trio.kill(0);
    assert!(!is_there());
}
