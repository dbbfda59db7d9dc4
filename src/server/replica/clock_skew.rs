//! The difference of each wall clock from the cluster's time. Every replica measures the difference of its own clock
//! and sends the result to the leader with each status report; the leader's reply has the differences of all replicas.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear_core::cluster_time::{ClockReading, Trust};
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_core::platform_time::Interval;

/// A larger difference causes a warning.
pub const WARN_ABOVE: Duration = Duration::from_secs(2);
/// A smaller difference ends the warning, which avoids repeated warnings for a clock at the border.
const WELL_BELOW: Duration = Duration::from_secs(1);
/// The number of samples for the choice of the best sample.
const KEPT: usize = 8;
/// A reply with a longer round trip is too inexact.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);
/// Clocks are read in whole milliseconds, and adjusted a little by time services.
const SLACK: Duration = Duration::from_millis(20);

/// A measurement of the cluster's time by a status report and the reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The middle of the round trip, on the monotonic clock.
    pub at: Timestamp,
    /// Half of the round trip is the possible error of the sample.
    pub round_trip: Duration,
    /// The cluster's time according to the leader.
    pub time: Timestamp,
}

/// The samples of a single leader.
#[derive(Default)]
pub struct Samples {
    leader: Option<String>,
    kept: VecDeque<Sample>,
}

impl Samples {
    /// Adds a sample, and returns the most exact of the last samples. Samples proven wrong are forgotten: a clock was
    /// set.
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

    fn only_of(&mut self, leader: &str) {
        if self.leader.as_deref() != Some(leader) {
            *self = Self { leader: Some(leader.into()), kept: VecDeque::new() };
        }
    }

    /// The newest of the samples with the shortest round trip.
    fn best(&self) -> Option<Sample> {
        self.kept.iter().min_by_key(|sample| sample.round_trip).copied()
    }
}

fn contradict(one: &Sample, other: &Sample) -> bool {
    let allowed = (one.round_trip + other.round_trip) / 2 + SLACK;
    let passed = other.at.0.saturating_sub(one.at.0);
    Duration::from_millis(one.time.0.saturating_add(passed).abs_diff(other.time.0)) > allowed
}

/// The milliseconds by which each replica's wall clock is ahead of the cluster's time.
pub type Ahead = BTreeMap<VmName, i64>;

/// The knowledge of a replica about all replicas' clocks.
#[derive(Default)]
pub struct ClockSkew {
    table: Mutex<OffsetTable>,
}

#[derive(Default)]
struct OffsetTable {
    ahead: Ahead,
    /// The readings against the cluster's time in force.
    readings: BTreeMap<VmName, ClockReading>,
    warned_about: BTreeSet<VmName>,
    /// The milliseconds by which the cluster's time is ahead of the platform's, as shown by this replica's endpoint.
    platform: Option<i64>,
    /// The beginning of a difference worth a warning, in the cluster's time. Survives a change of the leader, which
    /// avoids repeated warnings.
    platform_differs_since: Option<Timestamp>,
    /// The time from which on the cluster has used the clock of a leader without confirmation, by that clock.
    in_doubt_since: Option<Timestamp>,
}

impl ClockSkew {
    /// Forgets all measurements when the leader or the time changes: the known values were measured against the old
    /// time.
    pub fn forget(&self) {
        let mut table = self.lock();
        let (platform_differs_since, in_doubt_since) = (table.platform_differs_since, table.in_doubt_since);
        *table = OffsetTable { platform_differs_since, in_doubt_since, ..OffsetTable::default() };
    }

    /// Records, as the leader, the reading of a replica, or the lack of a reading.
    pub fn record_reading(&self, replica: &VmName, reading: ClockReading, trust: Trust) {
        let mut table = self.lock();
        let Some(ahead_ms) = reading.wall else {
            table.readings.entry(replica.clone()).or_default().is_asking = reading.is_asking;
            return;
        };
        table.readings.insert(replica.clone(), reading);
        table.ahead.insert(replica.clone(), ahead_ms);
        // Without a known time a clock is neither right nor wrong.
        if trust == Trust::Unknown {
            return;
        }
        let apart = Duration::from_millis(ahead_ms.unsigned_abs());
        if apart > WARN_ABOVE && table.warned_about.insert(replica.clone()) {
            tracing::warn!(
                %replica,
                ahead_ms,
                "wall clock not synchronised with the cluster's time; check its time service"
            );
        } else if apart < WELL_BELOW && table.warned_about.remove(replica) {
            tracing::info!(%replica, ahead_ms, "wall clock synchronised with the cluster's time again");
        }
    }

    /// The readings of all replicas for the time in force.
    pub fn readings(&self) -> BTreeMap<VmName, ClockReading> {
        self.lock().readings.clone()
    }

    /// Records the trust in the cluster's time `now`, and how far the platform's time is ahead of it, as shown by this
    /// replica's endpoint.
    pub fn measured(&self, platform: Option<Interval>, trust: Trust, now: Timestamp) {
        let mut table = self.lock();
        let in_doubt_since = table.in_doubt_since.unwrap_or(now);
        table.in_doubt_since = Some(in_doubt_since).filter(|_| trust == Trust::Guessed);
        table.platform = platform.map(|platform| platform.distance_to(0));
        let Some(ahead_ms) = table.platform else { return };
        let apart = Duration::from_millis(ahead_ms.unsigned_abs());
        if apart > WARN_ABOVE && table.platform_differs_since.is_none() {
            table.platform_differs_since = Some(now);
            tracing::warn!(
                ahead_ms,
                "the cluster's time differs from Azure's time, by this replica's metadata endpoint; notices end \
                 earlier or later than the cluster expects"
            );
        } else if apart < WELL_BELOW && table.platform_differs_since.take().is_some() {
            tracing::info!(ahead_ms, "cluster's time synchronised with Azure's time again");
        }
    }

    /// The milliseconds by which the cluster's time is ahead of the platform's; 0 as long as both times may be the
    /// same, and `None` while this replica's endpoint sends no date.
    pub fn platform(&self) -> Option<i64> {
        self.lock().platform
    }

    /// The time from which on nobody has confirmed the cluster's time; `None` while the time is known.
    pub fn in_doubt_since(&self) -> Option<Timestamp> {
        self.lock().in_doubt_since
    }

    /// The beginning of the difference worth a warning, and the present difference in milliseconds.
    pub fn platform_differs(&self) -> Option<(Timestamp, i64)> {
        let table = self.lock();
        Some((table.platform_differs_since?, table.platform?))
    }

    /// Records the leader's reply.
    pub fn record_leader_view(&self, ahead: Ahead) {
        self.lock().ahead = ahead;
    }

    pub fn known(&self) -> Ahead {
        self.lock().ahead.clone()
    }

    fn lock(&self) -> MutexGuard<'_, OffsetTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample in which the leader's time is `ahead` milliseconds ahead of the right time.
    fn sample(at: i64, round_trip: u64, ahead: i64) -> Sample {
        let time = Timestamp(1_000_000 + at + ahead);
        Sample { at: Timestamp(at), round_trip: Duration::from_millis(round_trip), time }
    }

    #[test]
    fn the_quickest_of_the_last_samples_counts() {
        let mut samples = Samples::default();
        samples.add("db-0", sample(0, 100, 40));
        samples.add("db-0", sample(500, 2, 0));
        assert_eq!(samples.add("db-0", sample(1000, 90, -40)), Some(sample(500, 2, 0)));
        assert_eq!(samples.add("db-0", sample(1500, 5000, 0)), Some(sample(500, 2, 0)), "too slow to tell");
        for at in 4..12 {
            samples.add("db-0", sample(at * 500, 20, 1));
        }
        assert_eq!(samples.best(), Some(sample(11 * 500, 20, 1)), "the quickest one is old");
        assert_eq!(samples.add("db-1", sample(9_000, 90, 7)), Some(sample(9_000, 90, 7)), "of another leader");
    }

    #[test]
    fn a_time_that_was_set_counts_at_once() {
        let mut samples = Samples::default();
        samples.add("db-0", sample(0, 1, 600_000));
        assert_eq!(samples.add("db-0", sample(500, 10, 3)), Some(sample(500, 10, 3)));
    }

    #[test]
    fn a_difference_is_warned_about_once() {
        let (differences, name) = (ClockSkew::default(), VmName::new("db-1"));
        let warned = |ahead_ms| {
            differences.record_reading(
                &name,
                ClockReading { wall: Some(ahead_ms), ..ClockReading::default() },
                Trust::Known,
            );
            differences.lock().warned_about.contains(&name)
        };
        assert_eq!([2000, 2001, 1500, -1999, 999, -2001].map(warned), [false, true, true, true, false, true]);
        differences.record_reading(&name, ClockReading { is_asking: true, ..ClockReading::default() }, Trust::Known);
        assert_eq!(differences.known(), BTreeMap::from([(name.clone(), -2001)]));
        let reading = ClockReading { wall: Some(-2001), is_asking: true, ..ClockReading::default() };
        assert_eq!(differences.readings(), BTreeMap::from([(name.clone(), reading)]));
        differences.forget();
        differences.record_reading(&name, reading, Trust::Unknown);
        assert!(differences.lock().warned_about.is_empty(), "nobody knows which clock is wrong");
    }

    #[test]
    fn a_time_in_doubt_is_told_from_its_beginning_until_it_is_known() {
        let differences = ClockSkew::default();
        let measured = |trust, now| {
            differences.measured(None, trust, Timestamp(now));
            differences.in_doubt_since().map(|since| since.0)
        };
        assert_eq!([measured(Trust::Unknown, 1), measured(Trust::Guessed, 2)], [None, Some(2)]);
        differences.forget();
        assert_eq!([measured(Trust::Guessed, 3), measured(Trust::Known, 4)], [Some(2), None]);
    }

    #[test]
    fn the_platforms_time_differs_only_where_it_cannot_be_the_clusters() {
        let differences = ClockSkew::default();
        let measured = |least: i64| {
            differences.measured(Interval::new(least, least + 1000), Trust::Known, Timestamp(least));
            (differences.platform(), differences.platform_differs().map(|(since, _)| since.0))
        };
        // A platform ahead leaves the cluster behind.
        let since = Some(2001);
        let expected = [(0, None), (-2000, None), (-2001, since), (-1000, since), (0, None), (2001, Some(-3001))];
        let expected = expected.map(|(ahead, since)| (Some(ahead), since));
        assert_eq!([-500, 2000, 2001, 1000, -1000, -3001].map(measured), expected);
        differences.forget();
        assert_eq!((differences.platform(), differences.platform_differs()), (None, None));
        assert_eq!(measured(-3002), (Some(2002), Some(-3001)), "the same goes on");
    }
}
