//! Replicas without a quorum, and the state of the other replicas afterwards.

use serde_json::json;

use super::super::cluster::Cluster;
use super::super::workload::hook;
use super::Album;

#[tokio::test(flavor = "multi_thread")]
async fn of_one_of_a_pair() {
    let Some(album) = Album::of().await else { return };
    let pair = || Cluster::of(&["db-0", "db-1"]).workload("database", vec![hook("drain")]);
    let plan = pair().also("cluster.takeover_after", "90s");
    let mut cluster = plan.start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    cluster.until(secondary, "alone", |status| !status.quorum).await;
    let order = json!({ "type": "Reboot", "vm": leader, "notice": "15m", "start_delay": 3_600_000 });
    let id = cluster.cloud.announce(order).await;
    album.take_blocker(&cluster, secondary, &id, "no_quorum-one_of_a_pair").await;
    album.take_blocker(&cluster, secondary, &id, "waiting_for_platform-approved_alone").await;
    cluster.start(leader);
    cluster.ready().await;
    album.take_blocker(&cluster, leader, &id, "waiting_for_platform-approved_by_another_alone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_of_three() {
    let Some(album) = Album::of().await else { return };
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let leader = cluster.leader(0).await;
    let (lost, left) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader, "notice": "15m" })).await;
    cluster.seen_by_all(&id).await;
    cluster.kill(leader);
    cluster.kill(lost);
    album.take_blocker(&cluster, left, &id, "no_quorum-one_of_three").await;
    let other = cluster.cloud.announce(json!({ "type": "Reboot", "vm": lost, "notice": "15m" })).await;
    album.take_blocker(&cluster, left, &other, "no_quorum-two_events").await;
}
