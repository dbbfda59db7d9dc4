//! Clients that write numbered rows, and keep a record of acknowledged writes.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::DatabaseClient;
use super::record::{Row, WriteRecord};
use super::three_nodes::ThreeNodeBed;

pub const CLIENTS: usize = 4;
/// Timeout of a client's calls to a server.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two rounds over all members.
const PAUSE: Duration = Duration::from_millis(10);

/// How a client connects to a member, as in `System`.
pub type Connect = fn(&ThreeNodeBed, usize, Duration) -> io::Result<Box<dyn DatabaseClient>>;

/// The progress of all clients while they write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteProgress {
    /// Acknowledged writes of each.
    pub counts: [u64; CLIENTS],
    pub latest: Option<LatestWrite>,
}

/// The write that was acknowledged last.
#[derive(Clone, Copy, Debug)]
pub struct LatestWrite {
    pub at: Instant,
    /// The member that took the write, the time of this member's first write, and the time without acknowledged
    /// writes before.
    pub place: usize,
    pub since: Instant,
    pub pause: Duration,
    /// When the latest write of this member began: the member took writes after this time.
    pub begun: Instant,
    /// The same of the member before.
    pub left: Option<Instant>,
}

impl WriteProgress {
    /// Whether every client has written some more rows since `before`, so that no gap is left open.
    pub fn is_beyond(&self, before: &Self) -> bool {
        self.counts.iter().zip(before.counts).all(|(now, before)| *now >= before + 20)
    }

    /// Records the acknowledgement of a write that the client began at `begun`.
    fn note(&mut self, client: usize, place: usize, begun: Instant) -> Instant {
        let at = Instant::now();
        self.counts[client] += 1;
        let latest = match self.latest {
            // A write that began before the latest move says nothing about the current primary.
            Some(latest) if begun < latest.since && latest.place != place => LatestWrite { at, ..latest },
            Some(latest) if latest.place == place => LatestWrite { at, begun: latest.begun.max(begun), ..latest },
            before => {
                let pause = before.map_or(Duration::ZERO, |before| at - before.at);
                LatestWrite { at, place, since: at, pause, begun, left: before.map(|before| before.begun) }
            }
        };
        self.latest = Some(latest);
        at
    }
}

pub struct Writers {
    is_over: Arc<AtomicBool>,
    progress: Arc<Mutex<WriteProgress>>,
    threads: Vec<JoinHandle<WriteRecord>>,
}

impl Writers {
    /// Each client waits for `rest` after every write.
    pub fn start(trio: &Arc<ThreeNodeBed>, connect: Connect, rest: Duration) -> Self {
        let mut writers = Self { is_over: Arc::default(), progress: Arc::default(), threads: Vec::new() };
        for number in 0..CLIENTS {
            let (trio, is_over, progress) = (trio.clone(), writers.is_over.clone(), writers.progress.clone());
            writers.threads.push(std::thread::spawn(move || {
                give_way();
                Writer { number, trio: &trio, connect, rest, is_over: &is_over, progress: &progress }.write()
            }));
        }
        writers
    }

    pub fn progress(&self) -> WriteProgress {
        *known(&self.progress)
    }

    /// The record of acknowledged and unknown writes.
    pub fn end(mut self) -> anyhow::Result<WriteRecord> {
        let records: Result<Vec<_>, _> = self.join().collect();
        Ok(WriteRecord::of_all(records.map_err(|_| anyhow!("a client has panicked"))?))
    }

    fn join(&mut self) -> impl Iterator<Item = std::thread::Result<WriteRecord>> {
        self.is_over.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.threads).into_iter().map(JoinHandle::join)
    }
}

impl Drop for Writers {
    /// Waits for the clients, which use the servers' folder.
    fn drop(&mut self) {
        self.join().for_each(drop);
    }
}

fn known(progress: &Mutex<WriteProgress>) -> MutexGuard<'_, WriteProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lowers the priority of this client where possible: real clients have processors of their own, and the VMs'
/// processors are left to the servers and replicas.
fn give_way() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    if let Some(id) = thread.file_name() {
        let _ = Command::new("renice").args(["-n", "10", "-p"]).arg(id).output();
    }
}

/// One client. A client knows all members, as real drivers do from the list in the address, begins with the member of
/// the last write, and uses any member that takes writes.
struct Writer<'a> {
    number: usize,
    trio: &'a ThreeNodeBed,
    connect: Connect,
    rest: Duration,
    is_over: &'a AtomicBool,
    progress: &'a Mutex<WriteProgress>,
}

impl Writer<'_> {
    fn write(&self) -> WriteRecord {
        let (mut record, mut row, mut place) = (WriteRecord::default(), Row { client: self.id(), number: 0 }, 0);
        while !self.is_over() {
            let Some((at, mut connection)) = self.connected(place) else {
                sleep(PAUSE);
                continue;
            };
            place = at;
            while !self.is_over() {
                row.number += 1;
                let begun = Instant::now();
                if connection.write(row).is_err() {
                    record.unknown.push(row);
                    sleep(PAUSE);
                    break;
                }
                let at = known(self.progress).note(self.number, place, begun);
                record.acknowledged.push((row, at));
                sleep(self.rest);
            }
        }
        record
    }

    fn id(&self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn connected(&self, place: usize) -> Option<(usize, Box<dyn DatabaseClient>)> {
        let places = (0..self.trio.vms.len()).map(|step| (place + step) % self.trio.vms.len());
        places.into_iter().find_map(|at| Some((at, (self.connect)(self.trio, at, PATIENCE).ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_has_the_begin_of_the_last_write_before_and_late_answers_of_the_old_primary_change_nothing() {
        let mut progress = WriteProgress::default();
        let now = Instant::now();
        let begun = [2, 1].map(|millis| now.checked_sub(Duration::from_millis(millis)).unwrap());
        progress.note(0, 0, begun[1]);
        progress.note(1, 0, begun[0]);
        let elsewhere = Instant::now();
        progress.note(2, 1, elsewhere);
        let moved = progress.latest.unwrap();
        assert_eq!((moved.place, moved.left, moved.begun), (1, Some(begun[1]), elsewhere));
        progress.note(3, 0, begun[1]);
        let late = progress.latest.unwrap();
        assert_eq!((late.place, late.left, late.since, late.begun), (1, moved.left, moved.since, moved.begun));
    }
}
