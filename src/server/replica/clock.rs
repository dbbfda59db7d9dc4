//! The clocks of the replica. No other module of the replica reads clocks.

use allclear_core::cluster_time;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::hooks::{Deadline, Wall};
use allclear_core::cluster_time::{ClockReading, Clocks, Trust};
use allclear_core::model::time::Timestamp;

/// The wall clock, which may jump; nothing important depends on the difference of two readings.
pub fn now() -> Timestamp {
    Timestamp(i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX))
}

/// The wall clock, finer than needed by any decision.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// `core::cluster_time` by the clocks of this machine.
pub struct ClusterClock {
    wall: Wall,
    known: Mutex<cluster_time::ClusterTime>,
}

impl Default for ClusterClock {
    fn default() -> Self {
        Self::on(Arc::new(now))
    }
}

impl ClusterClock {
    pub fn on(wall: Wall) -> Self {
        Self { wall, known: Mutex::default() }
    }

    /// This machine's wall clock.
    pub fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    /// Records the time of an applied entry, and whether any event is open after the entry.
    pub fn applied(&self, entry: Timestamp, is_busy: bool) {
        self.known().applied(self.clocks(), entry, is_busy);
    }

    /// Follows the time sent by the leader, another replica, for a moment of the monotonic clock, with the trust in
    /// this time. False where this replica knows better.
    pub fn follow(&self, time: Timestamp, at: Timestamp, trust: Trust) -> bool {
        self.known().follow(time, at, trust)
    }

    /// The trust in the cluster's time.
    pub fn trust(&self) -> Trust {
        self.known().trust()
    }

    /// Adopts, as a leader without a known time, the time sent by another replica. True when the time was adopted.
    pub fn adopt(&self, time: Timestamp) -> bool {
        self.known().adopt(self.clocks(), time)
    }

    /// This replica leads, and carries on the known time.
    pub fn lead(&self) {
        self.known().lead();
    }

    /// Sets the time, as the leader, by the readings of the voters, this replica's first; `voters` is the number of
    /// voters. True when the readings set the time.
    pub fn agree(&self, readings: &[ClockReading], voters: usize) -> bool {
        self.known().agree(self.clocks(), readings, voters)
    }

    /// Another replica leads and has sent the time. Before, the time is a guess, unless this replica leads.
    pub fn follows(&self) -> bool {
        self.known().follows()
    }

    pub fn now(&self) -> Timestamp {
        self.known().now(self.clocks())
    }

    /// The time of the last applied entry, carried on by the monotonic clock alone: never ahead of the cluster's time,
    /// independent of this machine's wall clock.
    pub fn of_the_log(&self) -> Timestamp {
        self.known().of_the_log(self.clocks())
    }

    /// A moment of the cluster's time on this machine's wall clock.
    pub fn to_wall_time(&self, moment: Timestamp) -> Timestamp {
        Timestamp(moment.0.saturating_add(self.wall_is_ahead_by()))
    }

    /// A moment of the cluster's time as a deadline of hooks.
    pub fn deadline(&self, moment: Timestamp) -> Deadline {
        let left = moment.since(self.now());
        Deadline { at: tokio::time::Instant::now() + left, on_the_wall: self.to_wall_time(moment) }
    }

    /// A moment of this machine's wall clock in the cluster's time.
    pub fn from_wall_time(&self, moment: Timestamp) -> Timestamp {
        Timestamp(moment.0.saturating_sub(self.wall_is_ahead_by()))
    }

    /// The name of the time carried on by this replica as the leader until a time is set.
    pub fn base(&self) -> i64 {
        self.known().base()
    }

    /// The milliseconds by which this machine's wall clock is ahead of the cluster's time.
    pub fn wall_is_ahead_by(&self) -> i64 {
        self.wall().0.saturating_sub(self.now().0)
    }

    fn clocks(&self) -> Clocks {
        Clocks { steady: monotonic(), wall: self.wall() }
    }

    fn known(&self) -> MutexGuard<'_, cluster_time::ClusterTime> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Divides the time since the start of a replica, identically for all callers.
pub struct Rhythm(tokio::time::Instant);

impl Default for Rhythm {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Rhythm {
    /// The time until the next multiple of `every`; never longer than `every`.
    pub fn until_next(&self, every: Duration) -> Duration {
        let every = every.as_nanos().max(1);
        let left = every - self.0.elapsed().as_nanos() % every;
        Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))
    }
}

/// The monotonic clock, for ages: milliseconds since the first call in this process.
pub fn monotonic() -> Timestamp {
    static START: OnceLock<Instant> = OnceLock::new();
    let since_start = START.get_or_init(Instant::now).elapsed();
    Timestamp(i64::try_from(since_start.as_millis()).unwrap_or(i64::MAX))
}

/// A moment of the operating system's monotonic clock as a timestamp of `monotonic`.
pub fn to_monotonic(at: Instant) -> Timestamp {
    monotonic().minus(at.elapsed())
}

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: Timestamp) -> String {
    let shown = jiff::Timestamp::from_millisecond(at.0);
    let nearest = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    format!("{:.3}", shown.unwrap_or(nearest))
}

/// Reads RFC 3339; `None` for any other text.
pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Duration = Duration::from_mins(10);

    /// Equality within the precision of tests: no test takes ten seconds.
    fn same(one: Timestamp, other: Timestamp) -> bool {
        one.0.abs_diff(other.0) < 10_000
    }

    fn own(time: &ClusterClock) -> ClockReading {
        ClockReading { wall: Some(time.wall_is_ahead_by()), ..ClockReading::default() }
    }

    #[test]
    fn the_clusters_time_is_never_behind_the_log_and_goes_on() {
        let time = ClusterClock::default();
        assert!(same(time.now(), now()));
        let far = now().plus(FAR);
        time.applied(far, false);
        assert!(time.now() >= far);
        let shown = time.to_wall_time(far.plus(Duration::from_mins(1)));
        assert!(same(shown, now().plus(Duration::from_mins(1))), "{shown:?}");
    }

    #[test]
    fn a_follower_goes_by_the_leaders_clock_and_turns_times_back_into_its_own() {
        for leaders in [now().plus(FAR), now().minus(FAR)] {
            let time = ClusterClock::default();
            assert!(!time.follows());
            time.follow(leaders, monotonic(), Trust::Known);
            assert!(time.follows() && same(time.now(), leaders));
            let deadline = leaders.plus(Duration::from_mins(1));
            assert!(same(time.to_wall_time(deadline), now().plus(Duration::from_mins(1))));
            assert!(same(time.from_wall_time(now().plus(Duration::from_mins(1))), deadline));
        }
    }

    #[test]
    fn a_new_leader_goes_on_with_the_time_of_the_old_one_until_nothing_is_open() {
        let time = ClusterClock::default();
        let before = now().minus(FAR);
        time.follow(before, monotonic(), Trust::Known);
        time.applied(before, true);
        time.lead();
        assert!(!time.agree(&[own(&time)], 1));
        assert!(same(time.now(), before), "a deadline would pass early by the difference");
        time.applied(before, false);
        assert!(time.agree(&[own(&time)], 1));
        assert!(same(time.now(), now()));
    }

    #[test]
    fn a_leader_that_opens_an_event_goes_on_from_there() {
        let time = ClusterClock::default();
        time.lead();
        let opened = now().plus(FAR);
        time.applied(opened, true);
        time.applied(now(), true);
        assert!(same(time.now(), opened));
    }

    #[tokio::test(start_paused = true)]
    async fn spans_that_fit_into_each_other_end_together() {
        let rhythm = Rhythm::default();
        let second = Duration::from_secs(1);
        tokio::time::advance(second * 7 / 4).await;
        let waits = [second, second / 2, second / 4, Duration::ZERO].map(|every| rhythm.until_next(every));
        assert_eq!(waits, [second / 4, second / 4, second / 4, Duration::from_nanos(1)]);
    }

    #[test]
    fn times_are_shown_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp(1_649_716_018_120)), "2022-04-11T22:26:58.120Z");
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999-"));
    }
}
