//! The acknowledgements of clients' writes, compared with the stored rows.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;

/// A row, identified by its client and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub client: u32,
    pub number: u64,
}

impl Row {
    /// Parses a row of a server's answer.
    pub fn read(client: &str, number: &str) -> io::Result<Self> {
        let (client, number) = client.parse().ok().zip(number.parse().ok()).ok_or_else(|| {
            let what = format!("{client}:{number} is no row");
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        Ok(Self { client, number })
    }
}

/// The writes of one client, or of several clients.
#[derive(Default)]
pub struct WriteRecord {
    pub acknowledged: Vec<(Row, Instant)>,
    /// May be there, and may be not.
    pub unknown: Vec<Row>,
}

/// Faults of a member's rows; all zero without faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// Acknowledged, and not there.
    pub lost: usize,
    /// There more than once.
    pub repeated: usize,
    /// There, and never written.
    pub invented: usize,
}

impl WriteRecord {
    pub fn of_all(records: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for record in records {
            all.acknowledged.extend(record.acknowledged);
            all.unknown.extend(record.unknown);
        }
        all.acknowledged.sort_unstable_by_key(|(_, at)| *at);
        all
    }

    /// The longest time without an acknowledgement of any client, from the first acknowledgement to the last.
    pub fn gap(&self) -> Duration {
        self.longest_gap().map(|(_, gap)| gap).unwrap_or_default()
    }

    /// The longest gap, with the start of the gap.
    pub fn longest_gap(&self) -> Option<(Instant, Duration)> {
        let pairs = self.acknowledged.windows(2);
        pairs.map(|pair| (pair[0].1, pair[1].1 - pair[0].1)).max_by_key(|(_, gap)| *gap)
    }

    /// The longest gap of a single client.
    pub fn worst_gap(&self) -> Duration {
        let mut last: BTreeMap<u32, Instant> = BTreeMap::new();
        let mut worst = Duration::ZERO;
        for (row, at) in &self.acknowledged {
            let before = last.insert(row.client, *at).unwrap_or(*at);
            worst = worst.max(*at - before);
        }
        worst
    }

    pub fn against(&self, rows: &[Row]) -> Wrong {
        let mut counts: BTreeMap<Row, usize> = BTreeMap::new();
        for row in rows {
            *counts.entry(*row).or_default() += 1;
        }
        let repeated = counts.values().filter(|count| **count > 1).count();
        let lost = self.acknowledged.iter().filter(|(row, _)| counts.remove(row).is_none()).count();
        for row in &self.unknown {
            counts.remove(row);
        }
        Wrong { lost, repeated, invented: counts.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_repeated_and_invented_is_told_apart() {
        let row = |number| Row { client: 1, number };
        let now = Instant::now();
        let acknowledged = [1, 2, 3].map(|number| (row(number), now)).into();
        let record = WriteRecord { acknowledged, unknown: vec![row(4), row(5)] };
        let against = |numbers: &[u64]| record.against(&numbers.iter().copied().map(row).collect::<Vec<_>>());
        assert_eq!(against(&[1, 2, 3]), Wrong::default());
        assert_eq!(against(&[5, 3, 2, 1]), Wrong::default());
        assert_eq!(against(&[1, 3, 3, 4, 4, 6]), Wrong { lost: 1, repeated: 2, invented: 1 });
    }

    #[test]
    fn a_gap_is_closed_by_whoever_is_told_next_and_the_worst_by_the_same_client() {
        let now = Instant::now();
        let told = |client, millis| (Row { client, number: millis }, now + Duration::from_millis(millis));
        let acknowledged = vec![told(1, 0), told(2, 10), told(2, 60), told(1, 90)];
        let record = WriteRecord { acknowledged, unknown: Vec::new() };
        assert_eq!((record.gap(), record.worst_gap()), (Duration::from_millis(50), Duration::from_millis(90)));
    }
}
