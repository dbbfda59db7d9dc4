//! Seeds that found something once.

use allclear::simulator::{Mistake, Verdict, generate, run};

/// What was wrong, and the seed under which it showed.
const FOUND: [(u64, &str); 0] = [];

#[test]
fn what_was_found_once_is_mended() {
    for (seed, what) in FOUND {
        let run = run(&generate(seed), Mistake::None, false);
        assert!(!matches!(run.verdict, Verdict::Failed(_)), "{what}: {:?}", run.verdict);
    }
}
