//! That every seed keeps the promises, and that a run can be repeated and made smaller.

use std::time::Duration;

use allclear::simulator::{
    self, Fault, Happening, Mistake, Property, Scenario, Trouble, Verdict, What, generate, reduce,
};

/// How many seeds every run of the suite tries; `ALLCLEAR_SEEDS` tries others, and more are tried by
/// `cargo run --release -- simulate`.
const SEEDS: u64 = 100;

fn play(scenario: &Scenario) -> simulator::Run {
    simulator::run(scenario, Mistake::None, false)
}

#[test]
fn every_seed_keeps_the_promises() {
    let seeds = std::env::var("ALLCLEAR_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let (mut effective, mut alone, mut unknown) = (0, 0, 0);
    for seed in 0..seeds {
        let run = play(&generate(seed));
        let breach = run.breach();
        assert!(breach.is_none(), "allclear simulate --seed {seed} --trace: {breach:?}");
        effective += run.effective;
        alone += run.alone;
        unknown += u64::from(run.verdict == Verdict::Unknown);
    }
    assert!(effective > 0 && alone > 0 && unknown < seeds / 4, "{effective} faults, {alone} alone, {unknown} unknown");
}

#[test]
fn one_seed_is_one_run_step_for_step() {
    for seed in [1, 2, 3] {
        let scenario = generate(seed);
        let (one, other) =
            (simulator::run(&scenario, Mistake::None, true), simulator::run(&scenario, Mistake::None, true));
        assert_eq!((one.digest, &one.trace), (other.digest, &other.trace), "seed {seed}");
        assert_eq!(play(&scenario).digest, one.digest, "a trace changes nothing");
        assert_ne!(play(&generate(seed + 100)).digest, one.digest);
    }
}

/// No faults: a cluster in which nothing but its events happens.
fn quiet(seed: u64) -> Scenario {
    let mut scenario = generate(seed);
    scenario.happenings.retain(|happening| matches!(happening.what, What::Announce(_) | What::Role(..)));
    scenario
}

#[test]
fn without_faults_every_event_comes_to_its_end_in_clusters_of_every_size() {
    let mut sizes = [false; 8];
    for seed in 0..40 {
        let scenario = quiet(seed);
        sizes[scenario.replicas] = true;
        let run = play(&scenario);
        assert_eq!(run.verdict, Verdict::Passed, "seed {seed}");
    }
    assert!(sizes.iter().filter(|seen| **seen).count() >= 5, "{sizes:?}");
}

#[test]
fn a_run_whose_faults_had_no_effect_proves_nothing() {
    let mut scenario = quiet(1);
    let at = scenario.heal_at.saturating_sub(Duration::from_millis(1));
    let trouble = Trouble::PostsLost;
    let what = What::Fault(Fault::Endpoint { vm: 0, trouble, lasts: Duration::from_millis(1) });
    scenario.happenings.push(Happening { at, after: None, what });
    assert_eq!(play(&scenario).verdict, Verdict::Unknown);
}

#[test]
fn a_failing_run_is_made_smaller_and_fails_still() {
    let failing = (0..200).map(generate).find_map(|scenario| {
        let run = simulator::run(&scenario, Mistake::AbsenceAtOnce, false);
        let is_it = run.breach().is_some_and(|breach| breach.property == Property::S6);
        (is_it && scenario.happenings.len() > 5).then_some(scenario)
    });
    let Some(scenario) = failing else { unreachable!("no seed breaks it") };
    let needed = reduce(&scenario, Mistake::AbsenceAtOnce, Property::S6);
    assert!(needed.len() < scenario.happenings.len(), "{needed:?}");
    let again = simulator::run(&scenario.only(&needed), Mistake::AbsenceAtOnce, false);
    assert_eq!(again.breach().map(|breach| breach.property), Some(Property::S6));
}
