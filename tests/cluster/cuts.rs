//! Replicas that cannot hear each other: who leads, who posts, and what those do that were left out.

use allclear::wire::pb::allclear::operator::v1::Status;

use super::cluster::Cluster;

fn lost_its_leader(status: &Status) -> bool {
    !status.quorum && status.leader.is_none()
}

#[tokio::test]
async fn a_follower_that_is_cut_off_has_no_leader_and_follows_when_it_is_healed() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).with_links().start().await;
    let leader = cluster.leader(0).await;
    let (follower, other) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.cut_off(follower);
    cluster.until(follower, "without a leader", lost_its_leader).await;
    let silent = |status: &Status| !status.replicas[follower].reachable;
    cluster.until(leader, "aware of the silence", silent).await;
    assert_eq!(cluster.leader(other).await, leader);
    cluster.heal();
    cluster.ready().await;
    cluster.cut_off_loudly(follower);
    cluster.until(follower, "without a leader", lost_its_leader).await;
    cluster.heal();
    cluster.ready().await;
}
