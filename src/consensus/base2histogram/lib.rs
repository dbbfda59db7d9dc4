//! Stands in for the crate of this name, with which openraft counts how long its steps take and how many entries each
//! has. That one fills 26 MiB of tables at the start of every process, used or not. Nobody here reads what openraft
//! counts, so it is kept coarsely: one bucket for each power of two.

use std::fmt;
use std::marker::PhantomData;

/// One for zero, and one for each number of significant bits.
const BUCKETS: usize = 65;

/// How many values of which size there were.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram<T = ()> {
    buckets: [u64; BUCKETS],
    data: PhantomData<T>,
}

impl<T> Histogram<T> {
    pub fn new() -> Self {
        Self { buckets: [0; BUCKETS], data: PhantomData }
    }

    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    pub fn record_n(&mut self, value: u64, count: u64) {
        let bucket = &mut self.buckets[(u64::BITS - value.leading_zeros()) as usize];
        *bucket = bucket.saturating_add(count);
    }

    pub fn total(&self) -> u64 {
        self.buckets.iter().fold(0, |total, count| total.saturating_add(*count))
    }

    /// The largest value that the bucket may hold in which so many of a thousand are reached.
    fn permille(&self, permille: u64) -> u64 {
        let wanted = u128::from(self.total()) * u128::from(permille);
        let mut below = 0;
        let bucket = self.buckets.iter().position(|count| {
            below += u128::from(*count) * 1000;
            below > 0 && below >= wanted
        });
        bucket.map_or(0, |bits| u64::MAX.checked_shr(u64::BITS - u32::try_from(bits).unwrap_or(0)).unwrap_or(0))
    }

    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats {
            samples: self.total(),
            p0_1: self.permille(1),
            p1: self.permille(10),
            p5: self.permille(50),
            p10: self.permille(100),
            p50: self.permille(500),
            p90: self.permille(900),
            p99: self.permille(990),
            p99_9: self.permille(999),
        }
    }
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// At most as large were so many percent of the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PercentileStats {
    pub samples: u64,
    pub p0_1: u64,
    pub p1: u64,
    pub p5: u64,
    pub p10: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, p50, p90, p99, .. } = self;
        write!(f, "{samples} samples, half of them up to {p50}, 90 % up to {p90}, 99 % up to {p99}")
    }
}

/// Several of them, for a drawing that nobody asks for here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AsciiChart {
    series: Vec<(String, Histogram)>,
}

impl AsciiChart {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn add(mut self, name: &str, histogram: Histogram) -> Self {
        self.series.push((name.to_owned(), histogram));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_by_their_size() {
        let mut counted = Histogram::<()>::new();
        assert_eq!(counted.percentile_stats().p50, 0);
        for value in [0, 1, 2, 3, 900, u64::MAX] {
            counted.record(value);
        }
        let stats = counted.percentile_stats();
        assert_eq!((stats.samples, stats.p0_1, stats.p50, stats.p90), (6, 0, 3, u64::MAX));
    }
}
