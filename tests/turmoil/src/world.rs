//! What all hosts of a run share: the platform, the history of the log, and what the run is to be like.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear::machine::id::VmName;

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

    pub(crate) fn from_word(word: &str) -> Option<Self> {
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
}

impl Manner {
    pub(crate) fn of(seed: u64) -> Self {
        let dice = Dice::of(seed, "manner");
        Self {
            replicas: *dice.pick(&[3, 3, 3, 5]),
            is_quiet: dice.percent(10),
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

impl World {
    pub(crate) fn new(seed: u64, mistake: Mistake, trace: Trace, root: &std::path::Path) -> Self {
        let manner = Manner::of(seed);
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
        }
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
