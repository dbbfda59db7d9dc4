//! Draws the faults.

use std::time::Duration;

use super::random::Random;
use super::scenario::{Fault, FaultClass, FaultKind};

/// Weights by the value of each fault for the test: faults that stop or isolate one replica are most frequent.
const KINDS: [(u64, Draw); 12] = [
    (16, |random, _, _| FaultKind::Crash { whole: random.percent(40) }),
    (14, |random, _, _| FaultKind::Pause { stops_clock: random.percent(35) }),
    (24, cut),
    (6, slow),
    (5, |_, _, _| FaultKind::Twice),
    (4, |_, _, _| FaultKind::Unanswered),
    (4, |random, _, _| FaultKind::DiskFails { is_written: random.percent(50) }),
    (4, |random, _, _| FaultKind::DiskSlow { by: random.millis(50, 2500) }),
    (4, |random, _, _| FaultKind::ApplySlow { by: random.millis(50, 3000) }),
    (4, |random, _, _| FaultKind::ClockJump { by: random.between(0, 120_000).cast_signed() - 60_000 }),
    (14, |random, _, _| FaultKind::Endpoint(trouble(random))),
    (1, |_, _, _| FaultKind::Incarnations),
];

/// The number of replicas, and the affected replica.
type Draw = fn(&mut Random, usize, usize) -> FaultKind;

pub(super) fn fault(random: &mut Random, replicas: usize) -> Fault {
    let vm = random.index(replicas);
    let lasts = length(random);
    let draw = random.weighted(&KINDS);
    Fault { vm, lasts, kind: draw(random, replicas, vm) }
}

fn slow(random: &mut Random, _: usize, _: usize) -> FaultKind {
    FaultKind::Slow { by: random.millis(20, 3000) }
}

/// A cut of this replica, and perhaps further replicas.
fn cut(random: &mut Random, replicas: usize, vm: usize) -> FaultKind {
    if replicas == 1 {
        return slow(random, replicas, vm);
    }
    let mut vms = vec![vm];
    for other in (0..replicas).filter(|other| *other != vm) {
        if vms.len() + 1 < replicas && random.percent(25) {
            vms.push(other);
        }
    }
    FaultKind::Cut { vms, both: random.percent(75) }
}

/// Shorter and longer than the timeouts of the cluster.
fn length(random: &mut Random) -> Duration {
    let (least, most) = random.weighted(&[(25, (300, 3_000)), (45, (3_000, 25_000)), (30, (25_000, 120_000))]);
    random.millis(least, most)
}

fn trouble(random: &mut Random) -> FaultClass {
    random.weighted(&[
        (10, FaultClass::Silent),
        (10, FaultClass::Empty),
        (6, FaultClass::Status(429)),
        (6, FaultClass::Status(500)),
        (8, FaultClass::Old),
        (10, FaultClass::Missing),
        (8, FaultClass::Partial),
        (4, FaultClass::OtherLetters),
        (4, FaultClass::Slow(4)),
        (4, FaultClass::Slow(8)),
        (10, FaultClass::PostsLost),
        (14, FaultClass::RepliesLost),
        (8, FaultClass::PostsRefused(500)),
        (8, FaultClass::PostsSlow(4)),
        (6, FaultClass::PostsSlow(14)),
    ])
}
