//! The exploration of one cluster, complete or up to a limit.

use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, Model};

use crate::world::Cluster;

/// Explores the cluster breadth first, and asserts every promise that the explored states can show. Returns how far the
/// exploration went, as columns of a table.
pub(crate) fn explored(cluster: Cluster, limit: Option<Duration>, most_states: usize) -> String {
    let begun = Instant::now();
    let mut checker = cluster.checker().threads(2).target_state_count(most_states);
    if let Some(limit) = limit {
        checker = checker.timeout(limit);
    }
    let checker = checker.spawn_bfs().join();
    let (took, states) = (begun.elapsed(), checker.unique_state_count());
    let is_whole = limit.is_none_or(|limit| took < limit) && checker.state_count() < most_states;
    let promises = checker.model().properties();
    for promise in promises.iter().filter(|it| is_whole || it.expectation == Expectation::Always) {
        match promise.expectation {
            Expectation::Sometimes => drop(checker.assert_any_discovery(promise.name)),
            Expectation::Always | Expectation::Eventually => checker.assert_no_discovery(promise.name),
        }
    }
    assert!(states > 1_000, "an empty model keeps every promise");
    let word = if is_whole { "all" } else { "the first" };
    format!("{word} {states} | {} | {:.0}", checker.max_depth(), took.as_secs_f64())
}
