//! What all hosts of a run share: the platform, the history of the log, and what the run is to be like.

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

/// Where every replica listens for the others.
pub(crate) const PORT: u16 = 7000;

/// A deliberate one, to see that it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    None,
    /// The last replica forgets an entry now and then.
    Forgets,
    /// Disks say that something is written which a crash then loses.
    LyingDisks,
    /// A client is told that a proposal is in the log when it was only proposed.
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

/// What a seed makes of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) replicas: usize,
    /// Nothing goes wrong, so nothing may be repeated either.
    pub(crate) is_quiet: bool,
    pub(crate) faults_for: Duration,
    /// A write takes at least and at most so long, in milliseconds.
    pub(crate) disk: (u64, u64),
    /// A message takes at most so long.
    pub(crate) latency: Duration,
    pub(crate) snapshot_every: u64,
    /// By so many milliseconds wall clocks are ahead or behind at most.
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

/// One run.
pub(crate) struct World {
    pub(crate) manner: Manner,
    pub(crate) mistake: Mistake,
    pub(crate) trace: Trace,
    pub(crate) history: History,
    pub(crate) platform: Platform,
    pub(crate) effects: Effects,
    pub(crate) dice: Dice,
    hosts: Mutex<Vec<Host>>,
    /// By so many milliseconds the wall clock of each host is ahead of the platform's.
    clocks: Vec<AtomicI64>,
    /// Whose disk and metadata service stand still.
    stalled: Vec<AtomicBool>,
}

/// What is known of a host from outside.
#[derive(Clone, Default)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// The folder of its present life.
    pub(crate) folder: PathBuf,
    pub(crate) lives: u32,
    /// Its replica has ended by itself, and why.
    pub(crate) ended: Option<String>,
    /// Proposals of its clients that were acknowledged.
    pub(crate) acknowledged: u64,
    pub(crate) glance: Glance,
}

/// How a replica looks at the moment.
#[derive(Clone, Default)]
pub(crate) struct Glance {
    pub(crate) applied: u64,
    pub(crate) term: u64,
    pub(crate) has_leader: bool,
    /// Open events in its state.
    pub(crate) open: usize,
}

/// Ahead or behind, by so much at most.
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
