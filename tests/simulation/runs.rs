//! Every seed keeps the properties, and a run can be repeated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use allclear::simulator::{
    self, Fault, FaultClass, FaultKind, Mutation, RunVerdict, Scenario, ScenarioAction, ScenarioStep, generate,
};

/// Number of seeds in every run of the suite; `ALLCLEAR_SEEDS` overrides the number.
const SEEDS: u64 = 10_000;

fn play(scenario: &Scenario) -> simulator::SimulationRun {
    simulator::run(scenario, Mutation::None, false)
}

#[derive(Default)]
struct Played {
    effective: usize,
    alone: usize,
    unknown: u64,
    broken: Vec<String>,
}

#[test]
fn every_seed_keeps_the_promises() {
    let count = std::env::var("ALLCLEAR_SEEDS").map_or(SEEDS, |count| count.parse().unwrap());
    let next = AtomicU64::new(0);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let played = thread::scope(|scope| {
        let players: Vec<_> = (0..cores).map(|_| scope.spawn(|| play_until(&next, count))).collect();
        players.into_iter().map(|player| player.join().unwrap()).fold(Played::default(), Played::and)
    });
    let Played { effective, alone, unknown, broken } = played;
    println!("{count} seeds: {} failed, {unknown} unknown, {effective} faults, {alone} posts alone", broken.len());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(effective > 0 && alone > 0 && unknown < count / 4, "worlds that nothing disturbed prove nothing");
}

/// Runs the next unclaimed seed, until there are none.
fn play_until(next: &AtomicU64, count: u64) -> Played {
    let mut played = Played::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= count {
            return played;
        }
        let run = play(&generate(seed));
        played.effective += run.effective;
        played.alone += run.alone;
        played.unknown += u64::from(run.verdict == RunVerdict::Unknown);
        played.broken.extend(
            run.breach()
                .map(|breach| format!("cargo run --release -p allclear-sim -- --seed {seed} --trace: {breach:?}")),
        );
    }
}

impl Played {
    fn and(mut self, other: Self) -> Self {
        self.effective += other.effective;
        self.alone += other.alone;
        self.unknown += other.unknown;
        self.broken.extend(other.broken);
        self
    }
}

#[test]
fn one_seed_is_one_run_step_for_step() {
    for seed in [1, 2, 3] {
        let scenario = generate(seed);
        let (one, other) =
            (simulator::run(&scenario, Mutation::None, true), simulator::run(&scenario, Mutation::None, true));
        assert_eq!((one.digest, &one.trace), (other.digest, &other.trace), "seed {seed}");
        assert_eq!(play(&scenario).digest, one.digest, "a trace changes nothing");
        assert_ne!(play(&generate(seed + 100)).digest, one.digest);
    }
}

/// A scenario without faults: only the events of the cluster happen.
fn quiet(seed: u64) -> Scenario {
    let mut scenario = generate(seed);
    scenario
        .happenings
        .retain(|happening| matches!(happening.what, ScenarioAction::Announce(_) | ScenarioAction::Role(..)));
    scenario
}

#[test]
fn without_faults_every_event_comes_to_its_end_in_clusters_of_every_size() {
    let mut sizes = [false; 8];
    for seed in 0..40 {
        let scenario = quiet(seed);
        sizes[scenario.replicas] = true;
        let run = play(&scenario);
        assert_eq!(run.verdict, RunVerdict::Passed, "seed {seed}");
    }
    assert!(sizes.iter().filter(|seen| **seen).count() >= 5, "{sizes:?}");
}

#[test]
fn a_run_whose_faults_had_no_effect_proves_nothing() {
    let mut scenario = quiet(1);
    let at = scenario.heal_at.saturating_sub(Duration::from_millis(1));
    let trouble = FaultClass::PostsLost;
    let what =
        ScenarioAction::Fault(Fault { vm: 0, lasts: Duration::from_millis(1), kind: FaultKind::Endpoint(trouble) });
    scenario.happenings.push(ScenarioStep { at, after: None, what });
    assert_eq!(play(&scenario).verdict, RunVerdict::Unknown);
}
