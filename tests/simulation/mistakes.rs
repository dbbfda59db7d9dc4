//! Deliberate mistakes: each is seen by the property that is named for it.

use allclear::simulator::{Mistake, Property, generate, run};

/// In so many seeds each of them shows.
const WITHIN: u64 = 1500;

/// The first seed that shows it, and the property by which; tried first.
const FIRST: [(Mistake, u64); 0] = [];

fn shows(mistake: Mistake, property: Property, seed: u64) -> bool {
    run(&generate(seed), mistake, false).breach().is_some_and(|breach| breach.property == property)
}

#[test]
fn every_mistake_is_seen() {
    for (mistake, property) in Mistake::ALL {
        let known = FIRST.iter().find(|(known, _)| *known == mistake).map(|(_, seed)| *seed);
        let seen = known.into_iter().chain(0..WITHIN).find(|seed| shows(mistake, property, *seed));
        assert!(seen.is_some(), "{mistake:?} does not break {property} in {WITHIN} seeds");
        println!("{mistake:?} breaks {property} under seed {}", seen.unwrap_or_default());
    }
}
