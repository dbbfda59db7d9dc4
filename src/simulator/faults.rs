//! Draws what goes wrong.

use std::time::Duration;

use super::random::Random;
use super::scenario::{Fault, Trouble};

/// As often as it tells something: what stops one replica or cuts it off comes most.
const KINDS: [(u64, Kind); 12] = [
    (16, Kind::Crash),
    (14, Kind::Pause),
    (24, Kind::Cut),
    (6, Kind::Slow),
    (5, Kind::Twice),
    (4, Kind::Unanswered),
    (4, Kind::DiskFails),
    (4, Kind::DiskSlow),
    (4, Kind::ApplySlow),
    (4, Kind::ClockJump),
    (14, Kind::Endpoint),
    (1, Kind::Incarnations),
];

#[derive(Clone, Copy)]
enum Kind {
    Crash,
    Pause,
    Cut,
    Slow,
    Twice,
    Unanswered,
    DiskFails,
    DiskSlow,
    ApplySlow,
    ClockJump,
    Endpoint,
    Incarnations,
}

pub(super) fn fault(random: &mut Random, replicas: usize) -> Fault {
    let vm = random.index(replicas);
    let lasts = length(random);
    match random.weighted(&KINDS) {
        Kind::Crash => Fault::Crash { vm, lasts, whole: random.percent(40) },
        Kind::Pause => Fault::Pause { vm, lasts, stops_clock: random.percent(35) },
        Kind::Cut if replicas > 1 => Fault::Cut { vms: side(random, replicas, vm), both: random.percent(75), lasts },
        Kind::Slow | Kind::Cut => Fault::Slow { by: random.millis(20, 3000), lasts },
        Kind::Twice => Fault::Twice { lasts },
        Kind::Unanswered => Fault::Unanswered { lasts },
        Kind::DiskFails => Fault::DiskFails { vm, is_written: random.percent(50), lasts },
        Kind::DiskSlow => Fault::DiskSlow { vm, by: random.millis(50, 2500), lasts },
        Kind::ApplySlow => Fault::ApplySlow { vm, by: random.millis(50, 3000), lasts },
        Kind::ClockJump => {
            let by = i64::try_from(random.between(0, 120_000)).unwrap_or(0) - 60_000;
            Fault::ClockJump { vm, by }
        }
        Kind::Endpoint => Fault::Endpoint { vm, trouble: trouble(random), lasts },
        Kind::Incarnations => Fault::Incarnations,
    }
}

/// Shorter and longer than what the cluster waits for.
fn length(random: &mut Random) -> Duration {
    let (least, most) = random.weighted(&[(25, (300, 3_000)), (45, (3_000, 25_000)), (30, (25_000, 120_000))]);
    random.millis(least, most)
}

/// This one, and perhaps others with it.
fn side(random: &mut Random, replicas: usize, vm: usize) -> Vec<usize> {
    let mut side = vec![vm];
    for other in (0..replicas).filter(|other| *other != vm) {
        if side.len() + 1 < replicas && random.percent(25) {
            side.push(other);
        }
    }
    side
}

fn trouble(random: &mut Random) -> Trouble {
    random.weighted(&[
        (10, Trouble::Silent),
        (10, Trouble::Empty),
        (6, Trouble::Status(429)),
        (6, Trouble::Status(500)),
        (8, Trouble::Old),
        (10, Trouble::Missing),
        (10, Trouble::PostsLost),
        (14, Trouble::RepliesLost),
        (8, Trouble::PostsRefused(500)),
        (8, Trouble::PostsSlow(4)),
        (6, Trouble::PostsSlow(14)),
    ])
}
