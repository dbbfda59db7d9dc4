//! The only place of the replica that reads clocks.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::machine::time::Timestamp;

/// The wall clock. It may jump; nothing that matters hangs on the difference of two readings.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// A clock that never goes back, for ages: milliseconds since this process first asked.
pub fn steady() -> Timestamp {
    static START: OnceLock<Instant> = OnceLock::new();
    let since_start = START.get_or_init(Instant::now).elapsed();
    Timestamp(i64::try_from(since_start.as_millis()).unwrap_or(i64::MAX))
}

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(at: Timestamp) -> String {
    let shown = jiff::Timestamp::from_millisecond(at.0);
    let nearest = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    format!("{:.3}", shown.unwrap_or(nearest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp(1_649_716_018_120)), "2022-04-11T22:26:58.120Z");
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999-"));
    }
}
