//! The only place of the replica that reads clocks.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::machine::time::Timestamp;

/// The wall clock. It may jump; nothing that matters hangs on the difference of two readings.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// The cluster's time: the wall clock, but never behind the log, whose last entry may have been stamped by a leader
/// with a faster clock. From there on it goes on, so that nothing waits for ever.
#[derive(Default)]
pub struct ClusterTime {
    /// The time of the last applied entry, and when that was on the steady clock.
    logged: Mutex<Option<(Timestamp, Timestamp)>>,
}

impl ClusterTime {
    /// An entry of this time was applied.
    pub fn applied(&self, entry: Timestamp) {
        *self.logged.lock().unwrap_or_else(PoisonError::into_inner) = Some((entry, steady()));
    }

    pub fn now(&self) -> Timestamp {
        let logged = *self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let of_the_log = logged.map(|(entry, at)| entry.plus(steady().since(at)));
        of_the_log.map_or_else(now, |of_the_log| of_the_log.max(now()))
    }

    /// A moment of the cluster's time on this machine's wall clock.
    pub fn on_the_wall(&self, moment: Timestamp) -> Timestamp {
        moment.minus(self.now().since(now()))
    }
}

/// A clock that never goes back, for ages: milliseconds since this process first asked.
pub fn steady() -> Timestamp {
    static START: OnceLock<Instant> = OnceLock::new();
    let since_start = START.get_or_init(Instant::now).elapsed();
    Timestamp(i64::try_from(since_start.as_millis()).unwrap_or(i64::MAX))
}

/// A moment of the operating system's monotonic clock on the steady clock.
pub fn steadily(at: Instant) -> Timestamp {
    steady().minus(at.elapsed())
}

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: Timestamp) -> String {
    let shown = jiff::Timestamp::from_millisecond(at.0);
    let nearest = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    format!("{:.3}", shown.unwrap_or(nearest))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_clusters_time_is_never_behind_the_log_and_goes_on() {
        let time = ClusterTime::default();
        assert!(time.now() >= now().minus(Duration::from_secs(1)));
        let far = now().plus(Duration::from_hours(100));
        time.applied(far);
        assert!(time.now() >= far);
        let shown = time.on_the_wall(far.plus(Duration::from_mins(1)));
        assert!(shown.since(now()) <= Duration::from_mins(1) && shown > now(), "{shown:?}");
    }

    #[test]
    fn times_are_shown_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp(1_649_716_018_120)), "2022-04-11T22:26:58.120Z");
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999-"));
    }
}
