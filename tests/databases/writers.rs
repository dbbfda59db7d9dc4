//! Clients that write numbered rows without pause, and keep what was acknowledged.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::record::{Record, Row};
use super::trio::{Client as _, System, Trio, until};

const CLIENTS: u32 = 4;
/// How long a client waits for a server.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two rounds over all members.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Writers {
    is_over: Arc<AtomicBool>,
    /// How many writes of each were acknowledged.
    counts: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<Record>>,
}

impl Writers {
    /// Returns when each of them is at work.
    pub(crate) fn start<S: System>(trio: &Arc<Trio>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let counts: Vec<_> = (0..CLIENTS).map(|_| Arc::default()).collect();
        let clients = (0..CLIENTS).zip(&counts);
        let threads = clients.map(|(client, count)| {
            let (trio, is_over, count) = (trio.clone(), is_over.clone(), Arc::clone(count));
            std::thread::spawn(move || {
                give_way();
                write::<S>(&trio, client, &is_over, &count)
            })
        });
        let threads = threads.collect();
        let writers = Self { is_over, counts, threads };
        writers.go_on();
        writers
    }

    /// Waits until each of them has written some more, so that no gap is left open.
    pub(crate) fn go_on(&self) {
        let so_far = || self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = so_far();
        until("acknowledged writes of every client", || {
            let now = so_far();
            let all_went_on = before.iter().zip(&now).all(|(before, now)| *now >= before + 20);
            all_went_on.then_some(()).ok_or_else(|| format!("they had {before:?}, and have {now:?}"))
        });
    }

    /// Returns what they were told, with every gap closed.
    pub(crate) fn stop(mut self) -> Record {
        self.go_on();
        Record::of_all(self.end().map(Result::unwrap))
    }

    fn end(&mut self) -> impl Iterator<Item = std::thread::Result<Record>> {
        self.is_over.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.threads).into_iter().map(JoinHandle::join)
    }
}

impl Drop for Writers {
    /// Waits for them: they hold the servers' folder.
    fn drop(&mut self) {
        self.end().for_each(drop);
    }
}

/// Clients have processors of their own. Here they leave those of the VMs to whoever else wants them.
fn give_way() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let id = thread.file_name().unwrap();
    let output = Command::new("renice").args(["-n", "10", "-p"]).arg(id).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// One client, until it is over. It knows all members, as the lists in real drivers' addresses do, begins with the one
/// that took its last write, and takes any that does.
fn write<S: System>(trio: &Trio, client: u32, is_over: &AtomicBool, count: &AtomicU64) -> Record {
    let (mut record, mut number, mut place) = (Record::default(), 0, 0);
    while !is_over.load(Ordering::Relaxed) {
        let places = (0..trio.vms.len()).map(|step| (place + step) % trio.vms.len());
        let taken = places.into_iter().find_map(|at| Some((at, S::connect(trio, at, PATIENCE).ok()?)));
        let Some((at, mut connection)) = taken else {
            std::thread::sleep(PAUSE);
            continue;
        };
        place = at;
        while !is_over.load(Ordering::Relaxed) {
            number += 1;
            let row = Row { client, number };
            if connection.write(row).is_err() {
                record.unknown.push(row);
                std::thread::sleep(PAUSE);
                break;
            }
            record.acknowledged.push((row, Instant::now()));
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    record
}
