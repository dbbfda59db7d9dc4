//! The platform's time from one metadata endpoint: by the `Date` of answers with a valid document (`SPEC.md` 13.2).
//! `NotBefore` is written in the platform's time.

use crate::model::time::Timestamp;
use core::time::Duration;

/// A `Date` is a whole second: the current second, a second rounded up from the second before, or a second kept for a
/// moment.
const BEFORE_DATE: i64 = 500;

const AFTER_DATE: i64 = 1_500;

/// Clocks of machines drift by less than one part in this many. The operating system adjusts a clock by at most one
/// part in 2,000.
const DRIFTS_ONE_IN: i64 = 2_000;

/// An unknown number of milliseconds, between the least and the greatest possible value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub least: i64,
    pub greatest: i64,
}

impl Interval {
    /// `None` if `least` is greater than `greatest`.
    pub fn new(least: i64, greatest: i64) -> Option<Self> {
        (least <= greatest).then_some(Self { least, greatest })
    }

    pub const fn holds(self, value: i64) -> bool {
        self.least <= value && value <= self.greatest
    }

    /// The distance of a number above the interval, as a negative number below the interval; 0 within.
    pub fn distance_to(self, value: i64) -> i64 {
        value.saturating_sub(value.clamp(self.least, self.greatest))
    }

    pub fn middle(self) -> i64 {
        self.least.saturating_add(self.greatest.saturating_sub(self.least) / 2)
    }

    fn with(self, other: Self) -> Option<Self> {
        Self::new(self.least.max(other.least), self.greatest.min(other.greatest))
    }

    fn plus(self, value: i64) -> Self {
        Self { least: self.least.saturating_add(value), greatest: self.greatest.saturating_add(value) }
    }

    fn wider_by(self, value: i64) -> Self {
        Self { least: self.least.saturating_sub(value), greatest: self.greatest.saturating_add(value) }
    }
}

/// The largest number of intervals with a common part, and the common part (Marzullo); of several common parts, the
/// lowest.
pub fn shared_by_most(intervals: &[Interval]) -> Option<(usize, Interval)> {
    let common = |first: &Interval| {
        let around = intervals.iter().filter(|each| each.holds(first.least));
        let count = around.clone().count();
        (count, around.fold(*first, |common, each| common.with(*each).unwrap_or(common)))
    };
    // The common part of most intervals begins where one interval begins.
    intervals.iter().map(common).max_by_key(|(count, common)| (*count, core::cmp::Reverse(common.least)))
}

/// The knowledge of one replica about the platform's time.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlatformTime(Option<Estimate>);

/// By how much the platform's time is ahead of the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    ahead: Interval,
    /// On the monotonic clock.
    at: Timestamp,
}

impl Estimate {
    fn at(self, steady: Timestamp) -> Interval {
        let passed = i64::try_from(steady.since(self.at).as_millis()).unwrap_or(i64::MAX);
        self.ahead.wider_by(passed / DRIFTS_ONE_IN)
    }
}

impl PlatformTime {
    /// Records the date of a valid document, requested `took` before now on the monotonic clock. A date that
    /// contradicts the known interval replaces the interval: the platform's clock was set, or this machine stood still.
    pub fn record_date(&mut self, date: Timestamp, took: Duration, steady: Timestamp) {
        let asked = steady.minus(took);
        let ahead = Interval {
            least: date.0.saturating_sub(BEFORE_DATE).saturating_sub(steady.0),
            greatest: date.0.saturating_add(AFTER_DATE).saturating_sub(asked.0),
        };
        let known = self.0.and_then(|known| known.at(steady).with(ahead));
        self.0 = Some(Estimate { ahead: known.unwrap_or(ahead), at: steady });
    }

    /// By how many milliseconds the platform's time is ahead of `time`, now on the monotonic clock; `None` before the
    /// first date.
    pub fn ahead_of(&self, time: Timestamp, steady: Timestamp) -> Option<Interval> {
        let ahead = self.0?.at(steady);
        Some(ahead.plus(steady.0.saturating_sub(time.0)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const SECOND: i64 = 1_000;

    fn interval(least: i64, greatest: i64) -> Interval {
        Interval::new(least, greatest).unwrap()
    }

    #[test]
    fn what_most_intervals_have_in_common_is_found_wherever_it_is() {
        type Ends = (i64, i64);
        type Case<'a> = (&'a [Ends], Option<(usize, Ends)>);
        let cases: [Case<'_>; 6] = [
            (&[], None),
            (&[(1, 3)], Some((1, (1, 3)))),
            (&[(0, 10), (8, 12)], Some((2, (8, 10)))),
            (&[(8, 12), (0, 10), (11, 13), (9, 9)], Some((3, (9, 9)))),
            (&[(0, 1), (5, 6), (2, 3)], Some((1, (0, 1)))),
            (&[(-5, 5), (5, 9), (100, 200)], Some((2, (5, 5)))),
        ];
        for (intervals, expected) in cases {
            let intervals: Vec<Interval> =
                intervals.iter().map(|(least, greatest)| interval(*least, *greatest)).collect();
            let expected = expected.map(|(count, (least, greatest))| (count, interval(least, greatest)));
            assert_eq!(shared_by_most(&intervals), expected, "{intervals:?}");
        }
    }

    #[test]
    fn dates_at_several_parts_of_a_second_narrow_it_down() {
        let mut platform = PlatformTime::default();
        assert_eq!(platform.ahead_of(Timestamp(0), Timestamp(0)), None);
        // The platform's time is the monotonic clock plus a thousand seconds.
        let true_ahead = 1_000 * SECOND;
        for (steady, took) in [(10_000, 40), (11_900, 40), (13_500, 200)] {
            let date = (true_ahead + steady - took / 2).div_euclid(SECOND) * SECOND;
            platform.record_date(Timestamp(date), Duration::from_millis(took.unsigned_abs()), Timestamp(steady));
        }
        let known = platform.ahead_of(Timestamp(0), Timestamp(13_500)).unwrap().plus(-13_500);
        assert!(known.holds(true_ahead), "{known:?}");
        assert!(known.greatest - known.least < 8 * SECOND / 5, "{known:?}");
        // After an hour the interval is wider.
        let later = platform.ahead_of(Timestamp(0), Timestamp(13_500 + 3_600 * SECOND)).unwrap();
        assert_eq!(later.greatest - later.least, known.greatest - known.least + 2 * 3_600 * SECOND / DRIFTS_ONE_IN);
    }

    #[test]
    fn a_date_that_contradicts_what_was_known_takes_its_place() {
        let mut platform = PlatformTime::default();
        let mut saw = |date: i64, steady: i64| {
            platform.record_date(Timestamp(date), Duration::ZERO, Timestamp(steady));
            platform.ahead_of(Timestamp(steady), Timestamp(steady)).unwrap()
        };
        let hour = 3_600 * SECOND;
        let fresh = |ahead: i64| interval(ahead - BEFORE_DATE, ahead + AFTER_DATE);
        assert_eq!(saw(0, 0), fresh(0));
        assert_eq!(saw(hour + SECOND, SECOND), fresh(hour));
        assert_eq!(saw(2 * SECOND, 2 * SECOND), fresh(0));
        assert_eq!(saw(i64::MAX, 3 * SECOND).least, i64::MAX - BEFORE_DATE - 3 * SECOND);
        assert!(saw(i64::MIN, 4 * SECOND).least < 0, "nothing from outside wraps");
    }

    #[test]
    fn a_distance_is_none_within() {
        let distances = [-7, -5, 0, 9, 12].map(|value| interval(-5, 9).distance_to(value));
        assert_eq!(distances, [-2, 0, 0, 0, 3]);
        assert_eq!(interval(-5, 9).middle(), 2);
    }
}
