//! When a lone secondary may settle on an event: the rules of rung 4 on its side.

use crate::cluster::Cluster;
use crate::rule::Rule;
use crate::world::{Shown, Silence, World};

pub(crate) fn may_choose(cluster: &Cluster, world: &World, replica: usize, event: usize) -> bool {
    let node = &world.nodes[replica];
    let sight = &world.cloud[event];
    node.silence >= needed(cluster)
        && node.chosen.is_none()
        && sight.shown == Shown::Scheduled
        && world.sees(replica, event)
        && (sight.is_ripe || !cluster.keeps(Rule::AloneOnlyWhatIsSeenForLong))
        && (cluster.events[event].is_users || !cluster.keeps(Rule::AloneOnlyForUsers))
        && !node.journal.contains(event)
        && (!world.view(replica).events[event].is_held || !cluster.keeps(Rule::AloneHeedsHolds))
        && (!world.may_run(world.view(replica), event) || !cluster.keeps(Rule::AloneOnlyWithoutHooks))
        && has_waited_for_a_quorum(cluster, world, replica, event)
        && is_only(cluster, world, replica, event)
}

fn needed(cluster: &Cluster) -> Silence {
    if cluster.keeps(Rule::AloneOnlyAfterTheWait) { Silence::Whole } else { Silence::Short }
}

/// The second waiting time: a quorum without it may be running hooks that it knows nothing of.
fn has_waited_for_a_quorum(cluster: &Cluster, world: &World, replica: usize, event: usize) -> bool {
    !may_be_without(world, replica)
        || !cluster.events[event].has_hook
        || world.cloud[event].is_due
        || !cluster.keeps(Rule::AloneOnlyAfterTheQuorumsTime)
}

/// The only event of its document and of its state that is not over there, and of what it remembers.
fn is_only(cluster: &Cluster, world: &World, replica: usize, event: usize) -> bool {
    let view = world.view(replica);
    let has_left = |other: usize| matches!(world.cloud[other].shown, Shown::Gone | Shown::Done);
    let remembers = may_be_without(world, replica) && cluster.keeps(Rule::AloneRemembersWhatItSaw);
    if remembers && world.nodes[replica].is_fresh {
        return false;
    }
    cluster.others(event).all(|other| {
        (!world.sees(replica, other) || !cluster.keeps(Rule::AloneOnlyTheOnlyEvent))
            && (!view.is_open(other) || !cluster.keeps(Rule::AloneMindsItsState))
            && (!remembers || !has_left(other) || view.events[other].is_closed)
    })
}

/// The voters that it knows of may have a quorum without it. Never so for one of a pair.
fn may_be_without(world: &World, replica: usize) -> bool {
    let voters = world.view(replica).voters.len();
    (voters - 1) * 2 > voters
}
