//! Scenarios and runs as text.

use std::io::Write as _;

use crate::simulator::{Run, Scenario, Verdict};

pub(super) fn scenario(scenario: &Scenario, places: &[usize]) -> Vec<String> {
    let head = format!(
        "{} replicas, a group loses at most {}, user budget {:?}, heals at {:?}",
        scenario.replicas, scenario.max_unavailable, scenario.policy.user_budget, scenario.heal_at
    );
    let happenings = scenario.happenings.iter().enumerate().filter(|(place, _)| places.contains(place));
    let lines = happenings.map(|(place, happening)| format!("{place:>3}: {happening}"));
    std::iter::once(head).chain(lines).collect()
}

pub(super) fn summary(seed: u64, run: &Run) -> String {
    let verdict = match &run.verdict {
        Verdict::Passed => "passed",
        Verdict::Unknown => "unknown: no fault took effect",
        Verdict::Failed(_) => "FAILED",
    };
    format!(
        "seed {seed}: {verdict}; {:.0} s simulated, {} of {} faults took effect, {} elections, {} entries, {} events, {} \
         posts ({} alone), {} hooks, digest {:016x}",
        run.simulated.as_secs_f64(),
        run.effective,
        run.faults,
        run.elections,
        run.entries,
        run.events,
        run.posts,
        run.alone,
        run.hooks,
        run.digest,
    )
}

/// Where nobody reads any more, nothing is lost.
pub(super) fn print(lines: &[String]) {
    let mut out = std::io::stdout().lock();
    for line in lines {
        if writeln!(out, "{line}").is_err() {
            return;
        }
    }
}
