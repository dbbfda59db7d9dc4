//! Seeds which once showed a problem.

use allclear::simulator::{Mutation, RunVerdict, generate, run};

/// Seed and problem. The lessons are in `tests/EVIDENCE.md`.
const FOUND: [(u64, &str); 7] = [
    (737, "a deletion that was approved and then cancelled"),
    (5664, "a deletion that nobody saw start leaves a member that is never there"),
    (2283, "an event that only a deleted VM has listed lately has no approver"),
    (5667, "a hook on a machine that stands still has not ended when its time is up"),
    (976, "events that strike a VM again while it is down"),
    (4792, "two troubles of an endpoint that overlap and say the same wrong thing twice in a row"),
    (3693, "a replica whose last report before a crash is committed when it has begun anew"),
];

#[test]
fn what_showed_once_is_judged_rightly() {
    for (seed, what) in FOUND {
        let run = run(&generate(seed), Mutation::None, false);
        assert!(!matches!(run.verdict, RunVerdict::Failed(_)), "{what}: {:?}", run.verdict);
    }
}
