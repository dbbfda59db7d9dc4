//! Clusters too large for a suite: `cargo prove --test model larger -- --ignored --nocapture`. Each cluster is explored
//! for at most `ALLCLEAR_MODEL` seconds, and a line is printed with the progress.

use std::time::Duration;

use crate::clusters::{
    asked, changing, cluster, dialled, drilling, failover, for_one_vm, one_step, reversible, two_events, two_steps,
    with,
};
use crate::explore::explored;
use crate::world::{Cluster, Trouble};
use allclear::core::model::document::Source;
use allclear::core::model::workload::OnAbsent;

const EACH: Duration = Duration::from_mins(2);
/// Limit of states: unexplored states are kept in memory.
const MOST_STATES: usize = 3_000_000;

fn larger() -> Vec<(&'static str, Cluster)> {
    use Source::{Platform, User};
    use Trouble::{Delays, Losses, Rogues};
    let one = || Some(one_step());
    let two = || Some(two_steps());
    vec![
        ("3 replicas, two hooks, 2 losses", with(2, Losses, cluster(3, User, two()))),
        ("3 replicas, two hooks of the platform, 1 loss", with(1, Losses, cluster(3, Platform, two()))),
        ("3 replicas, a failover that can be asked, 2 losses", with(2, Losses, cluster(3, Platform, Some(failover())))),
        ("3 replicas, no hooks, 3 losses", with(3, Losses, cluster(3, User, None))),
        ("2 replicas, what can be taken back, 2 losses", with(2, Losses, cluster(2, Platform, Some(reversible())))),
        ("3 replicas, two events of a group, 1 loss", with(1, Losses, two_events(cluster(3, User, None)))),
        ("2 replicas, two events of a group with a hook, 1 loss", with(1, Losses, two_events(cluster(2, User, one())))),
        ("2 replicas, two events of one VM with a hook, 1 loss", with(1, Losses, for_one_vm(cluster(2, User, one())))),
        ("3 replicas, two hooks, 1 late proposal", with(1, Delays, cluster(3, User, two()))),
        ("2 replicas, two hooks, 2 mad proposals", with(2, Rogues, cluster(2, User, two()))),
        ("2 replicas, two events of one VM, 1 mad proposal", with(1, Rogues, for_one_vm(cluster(2, Platform, one())))),
        ("2 replicas, two hooks, 2 wishes", asked(2, cluster(2, User, two()))),
        ("2 replicas, two events, 2 wishes", asked(2, two_events(cluster(2, Platform, None)))),
        ("2 replicas, a hook, 1 wish, 1 mad proposal", asked(1, with(1, Rogues, cluster(2, User, one())))),
        ("2 replicas, a drill before an event of the platform", drilling(cluster(2, Platform, one()))),
        ("2 replicas, a drill before an event, 1 loss", with(1, Losses, drilling(cluster(2, User, one())))),
        ("3 replicas, a failover, 2 changes of roles", changing(2, cluster(3, User, Some(failover())))),
        (
            "2 replicas, a failover, 1 change of role, 1 loss",
            with(1, Losses, changing(1, cluster(2, User, Some(failover())))),
        ),
        (
            "2 replicas, one that dials in and is waited for, 2 changes, 1 loss",
            with(1, Losses, changing(2, cluster(2, User, Some(dialled(OnAbsent::Hold, one_step()))))),
        ),
        (
            "2 replicas, one that dials in and is passed over, 2 changes, 1 loss",
            with(1, Losses, changing(2, cluster(2, User, Some(dialled(OnAbsent::Skip, one_step()))))),
        ),
        (
            "2 replicas, one that dials in and is stood in for, 2 changes, 1 loss",
            with(1, Losses, changing(2, cluster(2, User, Some(dialled(OnAbsent::Command, one_step()))))),
        ),
    ]
}

#[test]
#[ignore = "takes half an hour"]
fn larger_clusters_keep_the_promises() {
    let seconds = std::env::var("ALLCLEAR_MODEL").ok().and_then(|seconds| seconds.parse().ok());
    let limit = seconds.map_or(EACH, Duration::from_secs);
    for (bounds, cluster) in larger() {
        println!("| {bounds} | {} |", explored(cluster, Some(limit), MOST_STATES));
    }
}
