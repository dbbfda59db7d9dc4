//! Plays thousands of seeds of `src/simulator` and fails with those that break a promise: `cargo run --release --package
//! allclear-worlds -- COUNT`. Compiles what decides and what could happen and nothing else, so that it is optimised and
//! built within a minute; `allclear simulate --seed S --trace` shows what a seed does.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

extern crate alloc;

#[path = "../../../src/machine/mod.rs"]
#[allow(dead_code, unused_imports, reason = "a replica uses the rest")]
mod machine;
#[path = "../../../src/simulator/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the fake cloud and the command line use the rest")]
mod simulator;

use simulator::{Mistake, Verdict};

fn main() -> ExitCode {
    let Some(count) = std::env::args().nth(1).and_then(|count| count.parse().ok()) else {
        eprintln!("say how many seeds");
        return ExitCode::from(2);
    };
    let next = AtomicU64::new(0);
    let play = || {
        let (mut failed, mut unknown) = (Vec::new(), 0);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return (failed, unknown);
            }
            match simulator::run(&simulator::generate(seed), Mistake::None, false).verdict {
                Verdict::Passed => {}
                Verdict::Unknown => unknown += 1,
                Verdict::Failed(breach) => failed.push((seed, breach)),
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<(Vec<_>, u64)> = thread::scope(|scope| {
        let players: Vec<_> = (0..cores).map(|_| scope.spawn(play)).collect();
        players.into_iter().filter_map(|player| player.join().ok()).collect()
    });
    let unknown: u64 = results.iter().map(|(_, unknown)| unknown).sum();
    let failed: Vec<_> = results.iter().flat_map(|(failed, _)| failed).collect();
    for (seed, breach) in &failed {
        println!("seed {seed} breaks {}: {}; allclear simulate --seed {seed} --trace", breach.property, breach.what);
    }
    println!("{count} seeds: {} failed, {unknown} unknown", failed.len());
    // A world that nothing disturbed proves nothing, and a player that is gone has played nothing.
    if failed.is_empty() && results.len() == cores && unknown < count / 4 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
