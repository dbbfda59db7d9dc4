//! One run of one seed: a cluster forms, faults happen, everything works again, and the cluster must come to rest.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use allclear::core::model::time::Timestamp;
use turmoil::Builder;

use crate::dice::Dice;
use crate::nemesis::Nemesis;
use crate::world::World;
use crate::{host, net};

const TICK: Duration = Duration::from_millis(10);
const FORMED_WITHIN: Duration = Duration::from_mins(1);
const RESTS_WITHIN: Duration = Duration::from_mins(15);
/// A run with fewer acknowledgements proves nothing.
const LEAST_ACKNOWLEDGED: u64 = 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pass,
    Fail,
    /// Nothing was found, and nothing much happened either.
    Unknown,
}

/// Result of a run, in words which can be added up.
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) wrong: Vec<String>,
    numbers: BTreeMap<&'static str, u64>,
    faults: BTreeMap<&'static str, (u32, u32)>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "verdict={:?}", self.verdict)?;
        for (name, number) in &self.numbers {
            write!(f, " {name}={number}")?;
        }
        for (name, (tried, told)) in &self.faults {
            write!(f, " {name}={tried} {name}-noticed={told}")?;
        }
        Ok(())
    }
}

pub(crate) fn run(world: &Arc<World>, seed: u64) -> Outcome {
    let manner = world.manner;
    world.trace.line(format_args!("{manner:?}"));
    net::set_disk(Dice::of(seed, "disk"), world.clone());
    let mut sim = Builder::new()
        .simulation_duration(Duration::from_hours(10))
        .tick_duration(TICK)
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(manner.latency)
        .tcp_capacity(1 << 16)
        .rng_seed(seed)
        .build();
    for (place, name) in world.names().into_iter().enumerate() {
        let world = world.clone();
        sim.host(name, move || host::run(world.clone(), place));
    }
    let mut nemesis = Nemesis::new(sim, world.clone(), seed);
    let ended = lives(&mut nemesis, world, seed);
    let mut wrong = world.history.findings();
    wrong.extend(ended.err());
    outcome(&nemesis, world, wrong)
}

fn lives(nemesis: &mut Nemesis<'_>, world: &Arc<World>, seed: u64) -> Result<(), String> {
    let is_formed = |world: &World| world.hosts().iter().all(|host| host.glance.has_leader && host.glance.applied > 0);
    until(nemesis, world, (FORMED_WITHIN, "the cluster is formed"), false, |world, _| is_formed(world))?;
    let (dice, begun) = (Dice::of(seed, "events"), nemesis.sim.elapsed());
    let mut next = begun + dice.millis(1_000, 10_000);
    let announce = |world: &World, now: Duration| {
        if now >= next {
            next = now + dice.millis(5_000, 30_000);
            if let Some(announced) = world.platform.announce(on_the_wall(now)) {
                world.trace.line(format_args!("{announced}"));
            }
        }
        now >= begun + world.manner.faults_for
    };
    until(nemesis, world, (Duration::MAX, "the faults are over"), !world.manner.is_quiet, announce)?;
    nemesis.heal();
    let before: Vec<u64> = world.hosts().iter().map(|host| host.acknowledged).collect();
    let rests = |world: &World, now: Duration| {
        let length = world.history.length();
        let hosts = world.hosts();
        let are_one = hosts.iter().zip(&before).all(|(host, before)| {
            let glance = &host.glance;
            glance.has_leader && glance.open == 0 && glance.applied >= length && host.acknowledged > *before
        });
        are_one && world.platform.is_quiet(on_the_wall(now))
    };
    until(nemesis, world, (RESTS_WITHIN, "everything is at rest"), false, rests)
}

fn on_the_wall(now: Duration) -> Timestamp {
    Timestamp(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}

/// Runs until `holds` is true, something wrong is found, or the time limit is reached.
fn until(
    nemesis: &mut Nemesis<'_>,
    world: &World,
    (within, what): (Duration, &str),
    with_faults: bool,
    mut holds: impl FnMut(&World, Duration) -> bool,
) -> Result<(), String> {
    let begun = nemesis.sim.elapsed();
    loop {
        nemesis.sim.step().map_err(|error| format!("a host failed: {error}"))?;
        let now = nemesis.sim.elapsed();
        world.trace.clock(now);
        nemesis.tend();
        if with_faults {
            nemesis.act();
        }
        if !world.history.findings().is_empty() {
            return Ok(());
        }
        if holds(world, now) {
            return Ok(());
        }
        if now.saturating_sub(begun) > within {
            return Err(format!("not within {within:?}: {what}; {}", seen(world)));
        }
    }
}

fn seen(world: &World) -> String {
    let hosts = world.hosts();
    let shown = hosts.iter().map(|host| {
        let glance = &host.glance;
        format!(
            "{} applied {} of {}, term {}, leader {}, {} open, {} acknowledged",
            host.name,
            glance.applied,
            world.history.length(),
            glance.term,
            glance.has_leader,
            glance.open,
            host.acknowledged
        )
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn outcome(nemesis: &Nemesis<'_>, world: &World, wrong: Vec<String>) -> Outcome {
    let (digest, lines) = world.trace.digest();
    let acknowledged = world.history.acknowledgements();
    let noticed: u32 = ["crash", "cut"].iter().filter_map(|kind| nemesis.tally.get(kind)).map(|(_, told)| told).sum();
    let happened = acknowledged >= LEAST_ACKNOWLEDGED && world.platform.posts() > 0;
    let verdict = if !wrong.is_empty() {
        Verdict::Fail
    } else if happened && (world.manner.is_quiet || noticed > 0) {
        Verdict::Pass
    } else {
        Verdict::Unknown
    };
    let numbers = BTreeMap::from([
        ("acknowledged", acknowledged),
        ("digest", digest),
        ("entries", world.history.length()),
        ("events", world.platform.events() as u64),
        ("hooks", world.effects.count() as u64),
        ("lines", lines),
        ("posts", world.platform.posts()),
        ("quiet", u64::from(world.manner.is_quiet)),
        ("seconds", nemesis.sim.elapsed().as_secs()),
        ("terms", nemesis.term()),
    ]);
    Outcome { verdict, wrong, numbers, faults: nemesis.tally.clone() }
}
