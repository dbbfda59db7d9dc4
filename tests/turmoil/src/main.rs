//! Claim: replicas with the real openraft, tonic, redb and driver keep their promises on a simulated network, under all
//! faults of a seed. `run` beside this package starts this program; one process runs one seed.

#[cfg(not(any(tokio_unstable, clippy)))]
compile_error!("runs would not be reproducible: build this package with tests/turmoil/run, or from its folder");

mod dice;
mod history;
mod host;
mod nemesis;
mod net;
mod platform;
mod run;
mod seeds;
mod trace;
mod workload;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use mad_turmoil::time::SimClocksGuard;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tracing_subscriber::EnvFilter;

use crate::run::{Outcome, Verdict};
use crate::trace::Trace;
use crate::world::{Mistake, World};

const USAGE: &str = "seeds COUNT [FIRST] | seed SEED [MISTAKE] | check";
/// Filter of the replicas' log lines for the trace.
const LOGGED: &str = "allclear=info,openraft=error";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().ok();
    match words.as_slice() {
        ["seeds", count] => number(count).map(|count| seeds::all(1, count)),
        ["seeds", count, first] => number(count).zip(number(first)).map(|(count, first)| seeds::all(first, count)),
        ["seed", seed] => number(seed).map(|seed| one(seed, Mistake::None, true)),
        ["seed", seed, mistake] => {
            number(seed).zip(Mistake::parse(mistake)).map(|(seed, mistake)| one(seed, mistake, true))
        }
        // started by the other commands
        ["silently", seed, mistake] => {
            number(seed).zip(Mistake::parse(mistake)).map(|(seed, mistake)| one(seed, mistake, false))
        }
        ["check"] => Some(seeds::check()),
        _ => None,
    }
    .unwrap_or_else(|| {
        eprintln!("usage: {USAGE}");
        ExitCode::from(2)
    })
}

/// Runs one seed in this process.
fn one(seed: u64, mistake: Mistake, is_shown: bool) -> ExitCode {
    mad_turmoil::rand::set_rng(StdRng::seed_from_u64(seed));
    let trace = Trace::shown(is_shown);
    let traced = trace.clone();
    // A separate thread, because the standard library draws its randomness once per thread, and this thread has done so
    // already.
    let simulation = std::thread::Builder::new().stack_size(64 << 20).spawn(move || simulate(seed, mistake, &traced));
    let outcome = simulation.map_err(|error| error.to_string()).and_then(|running| {
        running.join().map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
        })
    });
    let is_fine = outcome.as_ref().is_ok_and(|outcome| outcome.verdict != Verdict::Fail);
    if !is_fine && !is_shown {
        for line in trace.end() {
            eprintln!("{line}");
        }
    }
    match outcome {
        Ok(outcome) => {
            for wrong in &outcome.wrong {
                eprintln!("wrong: {wrong}");
            }
            println!("seed={seed} {outcome}");
        }
        Err(panic) => {
            eprintln!("wrong: it panicked: {panic}");
            println!("seed={seed} verdict=Fail");
        }
    }
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn simulate(seed: u64, mistake: Mistake, trace: &Trace) -> Outcome {
    let filter = EnvFilter::new(LOGGED);
    let log = tracing_subscriber::fmt().with_writer(trace.clone()).without_time().with_ansi(false);
    let _logging = tracing::subscriber::set_default(log.with_env_filter(filter).finish());
    let in_memory = std::path::Path::new("/dev/shm");
    let root = if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() };
    let root = root.expect("a folder for the replicas' disks");
    let world = Arc::new(World::new(seed, mistake, trace.clone(), root.path()));
    let _clocks = SimClocksGuard::init();
    run::run(&world, seed)
}
