//! What clients were told of their writes while events went on, and whether all of it is there.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::pulse::bars;
use crate::cli::stage::servers::Settled;
use crate::cli::stage::{VMS, moment};
use crate::databases::record::{Record, Row, Wrong};
use crate::databases::writers::Latest;
use crate::machine::time::Timestamp;
use crate::replica::clock;

/// Shown before the pause, and after it.
const AROUND: Duration = Duration::from_millis(1500);
const COLUMN: Duration = Duration::from_millis(100);
/// A pause that is longer is shown by its begin.
const MOST_COLUMNS: usize = 72;

#[derive(Serialize)]
pub(super) struct Writes {
    system: &'static str,
    acknowledged: usize,
    /// Nobody was told whether they are there.
    unknown: usize,
    per_second: f64,
    /// Without a write that was acknowledged, by whichever client: each time when the primary moved, and at all.
    pauses_of_moves_ms: Vec<f64>,
    longest_pause_ms: f64,
    longest_pause_of_a_client_ms: f64,
    /// After the announcement that came last before it.
    longest_pause_begins_s: Option<f64>,
    /// Acknowledged in each tenth of a second, from 1.5 s before the longest pause of a move until 1.5 s after it; where
    /// nothing moved, of all.
    around_it: Vec<usize>,
    members: Vec<Member>,
}

/// What is wrong with the rows of a member; all zero when nothing is.
#[derive(Serialize)]
struct Member {
    vm: &'static str,
    lost: usize,
    repeated: usize,
    invented: usize,
}

impl Writes {
    /// `moves` are the first writes that another member took.
    pub(super) fn of(system: &'static str, settled: &Settled, moves: &[Latest], announced: &[Timestamp]) -> Self {
        let record = &settled.record;
        let pause = longest_pause(record);
        let begins = pause.map(|(from, _)| clock::now().minus(from.elapsed()));
        let longest_move = moves.iter().max_by_key(|first| first.pause);
        let shown = longest_move.and_then(|first| Some((first.since.checked_sub(first.pause)?, first.since))).or(pause);
        let before = |begins: Timestamp| announced.iter().copied().filter(|at| *at <= begins).max();
        Self {
            system,
            acknowledged: record.acknowledged.len(),
            unknown: record.unknown.len(),
            per_second: per_second(record),
            pauses_of_moves_ms: moves.iter().map(|first| millis(first.pause)).collect(),
            longest_pause_ms: millis(record.gap()),
            longest_pause_of_a_client_ms: millis(record.worst_gap()),
            longest_pause_begins_s: begins.and_then(|begins| Some(moment::seconds(before(begins)?, begins))),
            around_it: shown.map(|(from, to)| around(record, from, to)).unwrap_or_default(),
            members: settled.wrong.iter().map(|(vm, wrong)| Member::of(vm, *wrong)).collect(),
        }
    }

    /// Everything that is not as it should be.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for Member { vm, lost, repeated, invented } in &self.members {
            let wrong = [(lost, "acknowledged writes are lost"), (repeated, "are there more than once")];
            for (count, what) in wrong.into_iter().chain([(invented, "rows are there that nobody wrote")]) {
                if *count > 0 {
                    missing.push(format!("{} on {vm}: {count} {what}", self.system));
                }
            }
        }
        if self.acknowledged == 0 {
            missing.push(format!("{}: no write was acknowledged", self.system));
        }
        missing
    }

    /// For people.
    pub(super) fn told(&self) -> String {
        let mut text = format!(
            "Clients had {} writes acknowledged by {}, {:.0} per second\n",
            self.acknowledged, self.system, self.per_second
        );
        let begins = self.longest_pause_begins_s.map(|at| format!(", {at:.2} s after an announcement"));
        let mut pauses: Vec<(&str, f64, String)> = self
            .pauses_of_moves_ms
            .iter()
            .map(|pause| ("pause when the primary moved", *pause, String::new()))
            .collect();
        pauses.push(("longest pause of all", self.longest_pause_ms, begins.unwrap_or_default()));
        pauses.push(("longest for one client", self.longest_pause_of_a_client_ms, String::new()));
        for (what, millis, more) in pauses {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {what:<28} {millis:>7.0} ms{more}");
        }
        let numbers: Vec<u64> = self.around_it.iter().map(|count| *count as u64).collect();
        let which = if self.pauses_of_moves_ms.is_empty() { "the longest pause" } else { "the move" };
        let _ = writeln!(text, "  writes around {which}, 0.1 s each: |{}|", bars(&numbers));
        if self.missing().is_empty() {
            let (last, others) = (VMS[VMS.len() - 1], VMS[..VMS.len() - 1].join(", "));
            let _ = writeln!(text, "  every acknowledged write is there exactly once, on {others} and {last}");
        }
        text
    }
}

impl Member {
    fn of(vm: &'static str, wrong: Wrong) -> Self {
        let Wrong { lost, repeated, invented } = wrong;
        Self { vm, lost, repeated, invented }
    }
}

fn longest_pause(record: &Record) -> Option<(Instant, Instant)> {
    let moments = record.acknowledged.windows(2).map(|pair| (pair[0].1, pair[1].1));
    moments.max_by_key(|(from, to)| *to - *from)
}

fn around(record: &Record, from: Instant, to: Instant) -> Vec<usize> {
    let begin = from.checked_sub(AROUND).unwrap_or(from);
    let columns = ((to - begin) + AROUND).as_millis().div_ceil(COLUMN.as_millis());
    let mut counts = vec![0; usize::try_from(columns).unwrap_or(MOST_COLUMNS).min(MOST_COLUMNS)];
    let after = |(_, at): &(Row, Instant)| at.checked_duration_since(begin);
    for after in record.acknowledged.iter().filter_map(after) {
        let column = usize::try_from(after.as_millis() / COLUMN.as_millis()).unwrap_or(usize::MAX);
        if let Some(count) = counts.get_mut(column) {
            *count += 1;
        }
    }
    counts
}

fn per_second(record: &Record) -> f64 {
    let ends = record.acknowledged.first().zip(record.acknowledged.last());
    let took = ends.map_or(Duration::ZERO, |((_, from), (_, to))| *to - *from);
    let count = u32::try_from(record.acknowledged.len()).unwrap_or(u32::MAX);
    if took.is_zero() { 0.0 } else { f64::from(count) / took.as_secs_f64() }
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledged every 10 ms, but for half a second.
    fn settled(wrong: Wrong) -> Settled {
        let start = Instant::now();
        let at = |number: u64| (Row { client: 0, number }, start + Duration::from_millis(10 * number));
        let acknowledged = (0..300).filter(|number| !(101..150).contains(number)).map(at).collect();
        Settled { record: Record { acknowledged, unknown: Vec::new() }, wrong: vec![("db-0", wrong)] }
    }

    #[test]
    fn a_pause_is_seen_with_what_was_before_and_after_it() {
        let writes = Writes::of("PostgreSQL", &settled(Wrong::default()), &[], &[]);
        assert_eq!((writes.acknowledged, format!("{:.0}", writes.longest_pause_ms)), (251, "500".to_owned()));
        assert_eq!(writes.around_it.iter().filter(|count| **count == 0).count(), 4 + 5, "{:?}", writes.around_it);
        assert!(writes.told().contains("exactly once"), "{}", writes.told());
    }

    #[test]
    fn what_is_lost_is_missing() {
        let writes = Writes::of("Redis", &settled(Wrong { lost: 2, ..Wrong::default() }), &[], &[]);
        assert_eq!(writes.missing(), ["Redis on db-0: 2 acknowledged writes are lost"]);
        assert!(!writes.told().contains("exactly once"), "{}", writes.told());
    }
}
