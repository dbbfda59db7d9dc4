//! How far wall clocks are apart: measured by every replica against its leader, told to the leader with each beat, and
//! told by it to everybody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::machine::id::VmName;
use crate::machine::time::Timestamp;

/// From here on people are warned.
pub const WARN_ABOVE: Duration = Duration::from_secs(2);
/// And told that it is well again only here, so that a clock at the border is not told of again and again.
const WELL_BELOW: Duration = Duration::from_secs(1);
/// Samples that the best is chosen from.
const KEPT: usize = 8;
/// A reply that took longer tells too little.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);
/// Clocks are read in whole milliseconds, and pushed about a little by those who keep them.
const SLACK: Duration = Duration::from_millis(20);

/// What one beat and its reply told about the leader's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The middle of the round trip, on the steady clock.
    pub at: Timestamp,
    /// Half of it is how wrong the rest may be.
    pub round_trip: Duration,
    /// By how many milliseconds this machine's wall clock was ahead of the leader's.
    pub ahead_ms: i64,
    /// The cluster's time, as the leader keeps it.
    pub time: Timestamp,
}

/// The samples of one leader.
#[derive(Default)]
pub struct Samples {
    leader: Option<String>,
    kept: VecDeque<Sample>,
}

impl Samples {
    /// Takes one more, and tells the most exact of the last few. What it proves wrong is forgotten: a clock was set.
    pub fn add(&mut self, leader: &str, sample: Sample) -> Option<Sample> {
        self.only_of(leader);
        if sample.round_trip <= LONGEST_ROUND_TRIP {
            if self.kept.iter().any(|other| contradict(other, &sample)) {
                self.kept.clear();
            }
            self.kept.push_front(sample);
            self.kept.truncate(KEPT);
        }
        self.best()
    }

    /// By how much this machine's wall clock is ahead of this leader's.
    pub fn ahead_ms(&mut self, leader: &str) -> Option<i64> {
        self.only_of(leader);
        self.best().map(|best| best.ahead_ms)
    }

    fn only_of(&mut self, leader: &str) {
        if self.leader.as_deref() != Some(leader) {
            *self = Self { leader: Some(leader.into()), kept: VecDeque::new() };
        }
    }

    /// The newest of the quickest.
    fn best(&self) -> Option<Sample> {
        self.kept.iter().min_by_key(|sample| sample.round_trip).copied()
    }
}

fn contradict(one: &Sample, other: &Sample) -> bool {
    let allowed = (one.round_trip + other.round_trip) / 2 + SLACK;
    let apart = |one: i64, other: i64| Duration::from_millis(one.abs_diff(other)) > allowed;
    let passed = other.at.0.saturating_sub(one.at.0);
    apart(one.ahead_ms, other.ahead_ms) || apart(one.time.0.saturating_add(passed), other.time.0)
}

/// By how many milliseconds each replica's wall clock is ahead of the leader's.
pub type Ahead = BTreeMap<VmName, i64>;

/// What one replica knows of everybody's.
#[derive(Default)]
pub struct Differences {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    ahead: Ahead,
    warned_about: BTreeSet<VmName>,
}

impl Differences {
    /// Another leader: what is known is of no use against its clock.
    pub fn forget(&self) {
        *self.lock() = Table::default();
    }

    /// As the leader: a replica tells what it measured.
    pub fn heard(&self, replica: &VmName, ahead_ms: Option<i64>) {
        let Some(ahead_ms) = ahead_ms else { return };
        let mut table = self.lock();
        table.ahead.insert(replica.clone(), ahead_ms);
        let apart = Duration::from_millis(ahead_ms.unsigned_abs());
        if apart > WARN_ABOVE && table.warned_about.insert(replica.clone()) {
            tracing::warn!(
                %replica,
                ahead_ms,
                "its wall clock and this leader's differ; see to it that both are synchronised"
            );
        } else if apart < WELL_BELOW && table.warned_about.remove(replica) {
            tracing::info!(%replica, ahead_ms, "its wall clock and this leader's agree again");
        }
    }

    /// The leader's reply.
    pub fn told(&self, ahead: Ahead) {
        self.lock().ahead = ahead;
    }

    pub fn known(&self) -> Ahead {
        self.lock().ahead.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64, round_trip: u64, ahead_ms: i64) -> Sample {
        let time = Timestamp(1_000_000 + at);
        Sample { at: Timestamp(at), round_trip: Duration::from_millis(round_trip), ahead_ms, time }
    }

    #[test]
    fn the_quickest_of_the_last_samples_counts() {
        let mut samples = Samples::default();
        assert_eq!(samples.ahead_ms("db-0"), None);
        samples.add("db-0", sample(0, 100, 640));
        samples.add("db-0", sample(500, 2, 600));
        assert_eq!(samples.add("db-0", sample(1000, 90, 560)), Some(sample(500, 2, 600)));
        assert_eq!(samples.add("db-0", sample(1500, 5000, 0)), Some(sample(500, 2, 600)), "too slow to tell");
        for at in 4..12 {
            samples.add("db-0", sample(at * 500, 20, 601));
        }
        assert_eq!(samples.ahead_ms("db-0"), Some(601), "the quickest one is old");
        assert_eq!(samples.ahead_ms("db-1"), None, "of another leader");
    }

    #[test]
    fn a_clock_that_was_set_counts_at_once() {
        let mut samples = Samples::default();
        samples.add("db-0", sample(0, 1, 600_000));
        assert_eq!(samples.add("db-0", sample(500, 10, 3)), Some(sample(500, 10, 3)));
        let jumped = Sample { time: Timestamp(9_000_000), ..sample(1000, 40, 3) };
        assert_eq!(samples.add("db-0", jumped), Some(jumped));
    }

    #[test]
    fn a_difference_is_warned_about_once() {
        let (differences, name) = (Differences::default(), VmName::new("db-1"));
        let warned = |ahead_ms| {
            differences.heard(&name, Some(ahead_ms));
            differences.lock().warned_about.contains(&name)
        };
        assert_eq!([2000, 2001, 1500, -1999, 999, -2001].map(warned), [false, true, true, true, false, true]);
        differences.heard(&name, None);
        assert_eq!(differences.known(), BTreeMap::from([(name.clone(), -2001)]));
    }
}
