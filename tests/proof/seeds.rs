//! Claim: thousands of whole clusters, each from a seed, keep every promise under every fault, and come to rest. 10,000, or
//! as many as `ALLCLEAR_SEEDS` says; `allclear simulate --seed S --trace` shows what a seed does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use allclear_proof::simulator::{Mistake, Verdict, generate, run};

const SEEDS: u64 = 10_000;

#[derive(Default)]
struct Played {
    unknown: u64,
    broken: Vec<String>,
}

#[test]
fn no_cluster_of_thousands_breaks_a_promise() {
    let count = std::env::var("ALLCLEAR_SEEDS").map_or(SEEDS, |count| count.parse().unwrap());
    let next = AtomicU64::new(0);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let played: Vec<Played> = thread::scope(|scope| {
        let players: Vec<_> = (0..cores).map(|_| scope.spawn(|| play(&next, count))).collect();
        players.into_iter().map(|player| player.join().unwrap()).collect()
    });
    let unknown: u64 = played.iter().map(|played| played.unknown).sum();
    let broken: Vec<_> = played.into_iter().flat_map(|played| played.broken).collect();
    println!("{count} seeds: {} failed, {unknown} unknown", broken.len());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(unknown < count / 4, "a world that nothing disturbed proves nothing");
}

fn play(next: &AtomicU64, count: u64) -> Played {
    let mut played = Played::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= count {
            return played;
        }
        match run(&generate(seed), Mistake::None, false).verdict {
            Verdict::Passed => {}
            Verdict::Unknown => played.unknown += 1,
            Verdict::Failed(breach) => played.broken.push(format!(
                "seed {seed} breaks {}: {}; allclear simulate --seed {seed} --trace",
                breach.property, breach.what
            )),
        }
    }
}
