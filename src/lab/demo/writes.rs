//! The clients' writes during the events, and whether all acknowledged writes are stored.

use std::time::Duration;

use serde::Serialize;

use crate::local_cluster::VMS;
use crate::local_cluster::servers::Settled;
use crate::testbed::record::Wrong;
use crate::testbed::writers::LatestWrite;

#[derive(Serialize)]
pub(super) struct Writes {
    system: &'static str,
    acknowledged: usize,
    /// Writes without a result.
    unknown: usize,
    /// Times without an acknowledged write of any client: at each move of the primary, and the longest overall.
    pauses_of_moves_ms: Vec<f64>,
    longest_pause_ms: f64,
    members: Vec<MemberErrors>,
}

#[derive(Serialize)]
struct MemberErrors {
    vm: &'static str,
    #[serde(flatten)]
    wrong: Wrong,
}

impl Writes {
    /// `moves` are the first writes after each move of the primary.
    pub(super) fn of(system: &'static str, settled: &Settled, moves: &[LatestWrite]) -> Self {
        let record = &settled.record;
        Self {
            system,
            acknowledged: record.acknowledged.len(),
            unknown: record.unknown.len(),
            pauses_of_moves_ms: moves.iter().map(|first| millis(first.pause)).collect(),
            longest_pause_ms: millis(record.gap()),
            members: settled.wrong.iter().map(|(vm, wrong)| MemberErrors { vm, wrong: *wrong }).collect(),
        }
    }

    /// All faults of the record.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for MemberErrors { vm, wrong: Wrong { lost, repeated, invented } } in &self.members {
            let wrong = [
                (lost, "acknowledged writes are lost"),
                (repeated, "rows exist more than once"),
                (invented, "rows exist that no client wrote"),
            ];
            let found = wrong.into_iter().filter(|(count, _)| **count > 0);
            missing.extend(found.map(|(count, what)| format!("{} on {vm}: {count} {what}", self.system)));
        }
        if self.acknowledged == 0 {
            missing.push(format!("{}: no write was acknowledged", self.system));
        }
        missing
    }

    /// The record as text for people.
    pub(super) fn told(&self) -> String {
        let pause = |what: &str, millis: f64| format!("  {what:<28} {millis:>7.0} ms");
        let mut lines = vec![format!("{} acknowledged {} writes of the clients", self.system, self.acknowledged)];
        lines.extend(self.pauses_of_moves_ms.iter().map(|millis| pause("pause when the primary moved", *millis)));
        lines.push(pause("longest pause of all", self.longest_pause_ms));
        if self.missing().is_empty() {
            let (last, others) = (VMS[VMS.len() - 1], VMS[..VMS.len() - 1].join(", "));
            lines.push(format!("  every acknowledged write exists exactly once, on {others} and {last}"));
        }
        lines.join("\n")
    }
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::testbed::record::{Row, WriteRecord};

    fn settled(wrong: Wrong) -> Settled {
        let start = Instant::now();
        let at = |millis: u64| (Row { client: 0, number: millis }, start + Duration::from_millis(millis));
        let acknowledged = [0, 10, 510, 520].map(at).into();
        Settled { record: WriteRecord { acknowledged, unknown: Vec::new() }, wrong: vec![("db-0", wrong)] }
    }

    #[test]
    fn the_longest_pause_is_told_and_that_all_is_there() {
        let writes = Writes::of("PostgreSQL", &settled(Wrong::default()), &[]);
        assert_eq!((writes.acknowledged, format!("{:.0}", writes.longest_pause_ms)), (4, "500".to_owned()));
        assert!(writes.told().contains("exactly once"), "{}", writes.told());
    }

    #[test]
    fn what_is_lost_is_missing() {
        let writes = Writes::of("Redis", &settled(Wrong { lost: 2, ..Wrong::default() }), &[]);
        assert_eq!(writes.missing(), ["Redis on db-0: 2 acknowledged writes are lost"]);
        assert!(!writes.told().contains("exactly once"), "{}", writes.told());
    }
}
