//! Timestamps. Nothing here reads a clock.

use core::time::Duration;

/// It is counted back from now by another clock: a millisecond more or less would be news each time.
pub(crate) const fn to_the_second(Timestamp(ms): Timestamp) -> Timestamp {
    Timestamp((ms + 500).div_euclid(1_000) * 1_000)
}

/// Milliseconds since the Unix epoch, in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This much later; stays at the end of time rather than wrap.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// This much earlier; stays at the beginning of time rather than wrap.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// How long ago `earlier` was; zero when it has not come yet.
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
