//! Shared data of all hosts of a run: the platform, the history of the log, and the parameters of the run.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear::core::model::id::VmName;

use crate::dice::Dice;
use crate::history::History;
use crate::platform::Platform;
use crate::trace::Trace;
use crate::workload::Effects;

/// The port on which every replica listens for other replicas.
pub(crate) const PORT: u16 = 7000;

/// A deliberate mistake, which the checks must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    None,
    /// The last replica forgets an entry now and then.
    Forgets,
    /// Disks report a write as done which a crash then loses.
    LyingDisks,
    /// A client gets the acknowledgement of a proposal which was only proposed.
    EarlyAcknowledgement,
    /// A replica posts every approval twice.
    PostsTwice,
}

impl Mistake {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("none", Self::None),
        ("forgets", Self::Forgets),
        ("lying-disks", Self::LyingDisks),
        ("early-acknowledgement", Self::EarlyAcknowledgement),
        ("posts-twice", Self::PostsTwice),
    ];

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, mistake)| *mistake)
    }
}

/// The parameters which a seed chooses for a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) replicas: usize,
    /// Nothing goes wrong, so nothing may be repeated either.
    pub(crate) is_quiet: bool,
    pub(crate) faults_for: Duration,
    /// Minimum and maximum duration of a write, in milliseconds.
    pub(crate) disk: (u64, u64),
    /// Maximum duration of a message.
    pub(crate) latency: Duration,
    pub(crate) snapshot_every: u64,
    /// Maximum offset of wall clocks, ahead or behind, in milliseconds.
    pub(crate) clocks: u64,
}

impl Manner {
    pub(crate) fn of(seed: u64) -> Self {
        let (dice, clocks) = (Dice::of(seed, "manner"), Dice::of(seed, "clocks"));
        let replicas = *dice.pick(&[3, 3, 3, 5]);
        let is_quiet = dice.percent(10);
        Self {
            replicas,
            is_quiet,
            clocks: if is_quiet { 0 } else { *clocks.pick(&[0, 50, 5_000, 120_000]) },
            faults_for: dice.millis(60_000, 180_000),
            disk: *dice.pick(&[(0, 1), (1, 6), (1, 30)]),
            latency: *dice.pick(&[2, 10, 40].map(Duration::from_millis)),
            snapshot_every: *dice.pick(&[20, 60, 1000]),
        }
    }
}

pub(crate) struct World {
    pub(crate) manner: Manner,
    pub(crate) mistake: Mistake,
    pub(crate) trace: Trace,
    pub(crate) history: History,
    pub(crate) platform: Platform,
    pub(crate) effects: Effects,
    pub(crate) dice: Dice,
    hosts: Mutex<Vec<Host>>,
    /// Offset of each host's wall clock, ahead of the platform's clock, in milliseconds.
    clocks: Vec<AtomicI64>,
    /// Hosts with a stalled disk and metadata service.
    stalled: Vec<AtomicBool>,
}

/// State of a host, seen from outside.
#[derive(Clone, Default)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// The folder of the current run of the replica.
    pub(crate) folder: PathBuf,
    pub(crate) lives: u32,
    /// The reason, if the host's replica has ended by itself.
    pub(crate) ended: Option<String>,
    /// Acknowledged proposals of the host's clients.
    pub(crate) acknowledged: u64,
    pub(crate) glance: Glance,
}

/// A replica's current state.
#[derive(Clone, Default)]
pub(crate) struct Glance {
    pub(crate) applied: u64,
    pub(crate) term: u64,
    pub(crate) has_leader: bool,
    /// Open events in its state.
    pub(crate) open: usize,
}

/// A random offset, at most `most` ahead or behind.
pub(crate) fn ahead(dice: &Dice, most: u64) -> i64 {
    i64::try_from(dice.below(2 * most + 1)).unwrap_or(0) - i64::try_from(most).unwrap_or(0)
}

impl World {
    pub(crate) fn new(seed: u64, mistake: Mistake, trace: Trace, root: &std::path::Path) -> Self {
        let (manner, clocks) = (Manner::of(seed), Dice::of(seed, "hosts' clocks"));
        let names: Vec<String> = (0..manner.replicas).map(|place| format!("db-{place}")).collect();
        let host =
            |name: &String| Host { name: name.clone(), folder: root.join(format!("{name}.0")), ..Host::default() };
        Self {
            manner,
            mistake,
            trace,
            history: History::default(),
            platform: Platform::new(seed, names.iter().map(|name| VmName::new(name)).collect()),
            effects: Effects::default(),
            dice: Dice::of(seed, "hosts"),
            hosts: Mutex::new(names.iter().map(host).collect()),
            clocks: names.iter().map(|_| AtomicI64::new(ahead(&clocks, manner.clocks))).collect(),
            stalled: names.iter().map(|_| AtomicBool::default()).collect(),
        }
    }

    pub(crate) fn stalls(&self, place: usize) -> bool {
        self.stalled[place].load(Ordering::Relaxed)
    }

    pub(crate) fn set_stalls(&self, place: usize, stalls: bool) {
        self.stalled[place].store(stalls, Ordering::Relaxed);
    }

    pub(crate) fn ahead(&self, place: usize) -> i64 {
        self.clocks[place].load(Ordering::Relaxed)
    }

    pub(crate) fn set_clock(&self, place: usize, ahead: i64) {
        self.clocks[place].store(ahead, Ordering::Relaxed);
    }

    pub(crate) fn hosts(&self) -> MutexGuard<'_, Vec<Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.hosts().iter().map(|host| host.name.clone()).collect()
    }

    pub(crate) fn change(&self, place: usize, change: impl FnOnce(&mut Host)) {
        change(&mut self.hosts()[place]);
    }
}
