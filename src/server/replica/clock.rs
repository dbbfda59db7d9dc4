//! The only place of the replica that reads clocks.

use allclear_core::cluster_time;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::hooks::{Deadline, Wall};
use allclear_core::cluster_time::{ClockReading, Clocks, Trust};
use allclear_core::model::time::Timestamp;

/// The wall clock. It may jump; nothing that matters hangs on the difference of two readings.
pub fn now() -> Timestamp {
    Timestamp(i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX))
}

/// The wall clock, finer than anything decided needs it.
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

    /// An entry of this time was applied; now something is open, or nothing is.
    pub fn applied(&self, entry: Timestamp, is_busy: bool) {
        self.known().applied(self.clocks(), entry, is_busy);
    }

    /// The leader, another replica, told what time it was at a moment of the steady clock, and how far that is to be
    /// believed. False where this replica knows better.
    pub fn follow(&self, time: Timestamp, at: Timestamp, trust: Trust) -> bool {
        self.known().follow(time, at, trust)
    }

    /// How far it is to be believed.
    pub fn trust(&self) -> Trust {
        self.known().trust()
    }

    /// As a leader that does not know the time: another replica does, and tells it. True when it was taken over.
    pub fn adopt(&self, time: Timestamp) -> bool {
        self.known().adopt(self.clocks(), time)
    }

    /// This replica leads, and carries on the time that it knows.
    pub fn lead(&self) {
        self.known().lead();
    }

    /// As the leader: what so many voters tell of the time, this replica first. True when the time was set by that.
    pub fn agree(&self, readings: &[ClockReading], voters: usize) -> bool {
        self.known().agree(self.clocks(), readings, voters)
    }

    /// Another replica leads and has told the time. Before that it is a guess, unless this one leads.
    pub fn follows(&self) -> bool {
        self.known().follows()
    }

    pub fn now(&self) -> Timestamp {
        self.known().now(self.clocks())
    }

    /// The time of the last applied entry, carried on by the steady clock alone: never ahead of the cluster's, whatever
    /// this machine's wall clock says.
    pub fn of_the_log(&self) -> Timestamp {
        self.known().of_the_log(self.clocks())
    }

    /// A moment of the cluster's time on this machine's wall clock.
    pub fn to_wall_time(&self, moment: Timestamp) -> Timestamp {
        Timestamp(moment.0.saturating_add(self.wall_is_ahead_by()))
    }

    /// A moment of the cluster's time as hooks are given it.
    pub fn deadline(&self, moment: Timestamp) -> Deadline {
        let left = moment.since(self.now());
        Deadline { at: tokio::time::Instant::now() + left, on_the_wall: self.to_wall_time(moment) }
    }

    /// A moment of this machine's wall clock in the cluster's time.
    pub fn from_wall_time(&self, moment: Timestamp) -> Timestamp {
        Timestamp(moment.0.saturating_sub(self.wall_is_ahead_by()))
    }

    /// Names the time that this replica carries on as the leader until it is set.
    pub fn base(&self) -> i64 {
        self.known().base()
    }

    /// By how many milliseconds this machine's wall clock is ahead of the cluster's time.
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

/// Divides the time since a replica began, the same way for everybody who asks.
pub struct Rhythm(tokio::time::Instant);

impl Default for Rhythm {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Rhythm {
    /// How long until the next multiple of a span; never longer than that.
    pub fn until_next(&self, every: Duration) -> Duration {
        let every = every.as_nanos().max(1);
        let left = every - self.0.elapsed().as_nanos() % every;
        Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))
    }
}

/// A clock that never goes back, for ages: milliseconds since this process first asked.
pub fn monotonic() -> Timestamp {
    static START: OnceLock<Instant> = OnceLock::new();
    let since_start = START.get_or_init(Instant::now).elapsed();
    Timestamp(i64::try_from(since_start.as_millis()).unwrap_or(i64::MAX))
}

/// A moment of the operating system's monotonic clock on the steady clock.
pub fn to_monotonic(at: Instant) -> Timestamp {
    monotonic().minus(at.elapsed())
}

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: Timestamp) -> String {
    let shown = jiff::Timestamp::from_millisecond(at.0);
    let nearest = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    format!("{:.3}", shown.unwrap_or(nearest))
}

/// `None` for anything else.
pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Duration = Duration::from_mins(10);

    /// As tests can tell: they take no ten seconds.
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
