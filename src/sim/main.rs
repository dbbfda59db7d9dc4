//! `simulate`: whole clusters under faults, each made from a seed. Opens no port and writes nothing.

use std::io::Write as _;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use allclear_sim::{Breach, Mutation, RunVerdict, SimulationRun};
use clap::Parser;

/// Plays whole clusters under faults, each made from a seed, and judges them
#[derive(Parser)]
#[command(name = "simulate")]
struct Simulate {
    /// How many seeds, from 0 on
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "seed")]
    seeds: u64,
    /// This one alone
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Print what happens, line by line
    #[arg(long, requires = "seed")]
    trace: bool,
}

fn main() -> ExitCode {
    let told = Simulate::parse().run();
    if told { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Simulate {
    /// False if a property was broken.
    fn run(self) -> bool {
        let Some(seed) = self.seed else { return play(self.seeds) };
        let run = allclear_sim::run(&allclear_sim::generate(seed), Mutation::None, self.trace);
        let mut out = std::io::stdout().lock();
        for line in &run.trace {
            // Without a reader no output is lost.
            if writeln!(out, "{line}").is_err() {
                break;
            }
        }
        let verdict = match &run.verdict {
            RunVerdict::Passed => "passed".into(),
            RunVerdict::Unknown => "unknown: no fault took effect".into(),
            RunVerdict::Failed(breach) => format!("FAILED: {:?} is broken: {}", breach.property, breach.what),
        };
        let SimulationRun { simulated, faults, effective, alone, digest, .. } = &run;
        say(&format!(
            "seed {seed}: {verdict}; {:.0} s simulated, {effective} of {faults} faults took effect, {alone} posts alone, \
             digest {digest:016x}",
            simulated.as_secs_f64()
        ));
        run.breach().is_none()
    }
}

fn say(line: &str) {
    // Without a reader no output is lost.
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[derive(Default)]
struct Sum {
    failed: Vec<(u64, Breach)>,
    unknown: u64,
    simulated: Duration,
    faults: usize,
    alone: usize,
}

/// Runs seeds from 0 up to `seeds`, on every core.
fn play(seeds: u64) -> bool {
    let (next, began) = (AtomicU64::new(0), Instant::now());
    let mut sum = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let players: Vec<_> = (0..cores).map(|_| scope.spawn(|| play_until(&next, seeds))).collect();
        let played = players.into_iter().map(|player| player.join().unwrap_or_else(|panic| resume_unwind(panic)));
        played.fold(Sum::default(), Sum::and)
    });
    sum.failed.sort_by_key(|(seed, _)| *seed);
    for (seed, breach) in &sum.failed {
        let Breach { property, what, .. } = breach;
        say(&format!("seed {seed} breaks {property:?}: {what}\n  cargo run -p allclear-sim -- --seed {seed} --trace"));
    }
    say(&format!(
        "{seeds} seeds in {:.0} s: {} failed, {} unknown; {:.0} h simulated, {} faults, {} posts alone",
        began.elapsed().as_secs_f64(),
        sum.failed.len(),
        sum.unknown,
        sum.simulated.as_secs_f64() / 3600.0,
        sum.faults,
        sum.alone
    ));
    sum.failed.is_empty()
}

/// Runs the next free seed, until none is left.
fn play_until(next: &AtomicU64, end: u64) -> Sum {
    let mut sum = Sum::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return sum;
        }
        let run = allclear_sim::run(&allclear_sim::generate(seed), Mutation::None, false);
        sum.simulated += run.simulated;
        sum.faults += run.effective;
        sum.alone += run.alone;
        match run.verdict {
            RunVerdict::Passed => {}
            RunVerdict::Unknown => sum.unknown += 1,
            RunVerdict::Failed(breach) => sum.failed.push((seed, breach)),
        }
    }
}

impl Sum {
    fn and(mut self, other: Self) -> Self {
        self.failed.extend(other.failed);
        self.unknown += other.unknown;
        self.simulated += other.simulated;
        self.faults += other.faults;
        self.alone += other.alone;
        self
    }
}
