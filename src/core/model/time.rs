//! Timestamps. Nothing here reads a clock.

use core::time::Duration;

/// Rounds a time that another clock counts back from now: a millisecond more or less would count as a change each time.
pub const fn to_the_second(Timestamp(ms): Timestamp) -> Timestamp {
    Timestamp((ms + 500).div_euclid(1_000) * 1_000)
}

/// Milliseconds since the Unix epoch, in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Later than every other timestamp: the time of what has no known time.
    pub const MAX: Self = Self(i64::MAX);

    /// `span` later; saturates at the end of time.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// `span` earlier; saturates at the beginning of time.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// The time passed since `earlier`; zero when `earlier` has not come yet.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_wraps() {
        assert_eq!(Timestamp(i64::MAX).plus(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MIN).minus(Duration::MAX), Timestamp(i64::MIN));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
        assert_eq!(Timestamp(9_000).since(Timestamp(5_000)), Duration::from_secs(4));
    }
}
