//! Deleted VMs: their replicas leave the cluster permanently, and their successors are new replicas.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::json;

use super::cluster::Cluster;
use super::workload::{hook, usual_hooks};

fn is_gone(status: &Status, name: &str) -> bool {
    let member = status.replicas.iter().any(|replica| replica.name == name && replica.member);
    !member && status.workloads.iter().all(|workload| workload.vm != name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_vm_is_deleted_leaves_and_its_successor_joins_as_new() {
    let mut cluster = Cluster::with_hooks(usual_hooks()).await;
    let leader = cluster.leader(0).await;
    let (deleted, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let name = format!("db-{deleted}");
    let id = cluster.cloud.announce(json!({ "type": "Terminate", "vm": deleted })).await;
    cluster.until_stage(other, &id, "started").await;
    cluster.until(other, "without it", |status| is_gone(status, &name)).await;
    let told = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("was removed"));
    cluster.until(deleted, "told that it was removed", told).await;
    cluster.a_few_polls_later().await;
    assert!(is_gone(&cluster.status(other).await.unwrap(), &name), "it registered again");
    cluster.kill(deleted);
    cluster.lose_disk(deleted);
    cluster.cloud.finish(&id).await;
    let event = cluster.until_stage(other, &id, "closed").await;
    assert_eq!(event.outcome.as_deref(), Some("completed"));
    let hooks = ["failover", "drain", "shutdown"];
    assert_eq!(cluster.hooks.begun(), hooks, "something was put back on a VM that is gone");

    // The scale set uses the name again.
    cluster.start(deleted);
    cluster.ready().await;
    let is_back = |status: &Status| {
        status.replicas.iter().any(|replica| replica.name == name && replica.voter)
            && status.workloads.iter().any(|workload| workload.vm == name)
    };
    cluster.until(other, "complete again", is_back).await;
    cluster.a_few_polls_later().await;
    assert!(is_back(&cluster.status(other).await.unwrap()), "the new VM was taken for the old one");
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": deleted })).await;
    cluster.until_stage(other, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun().last().map(String::as_str), Some("restore"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_vm_is_deleted_hands_over_and_leaves() {
    let cluster = Cluster::with_hooks(vec![hook("drain"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let (name, other) = (format!("db-{leader}"), (leader + 1) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Terminate", "source": "Platform", "vm": leader })).await;
    cluster.until_stage(other, &id, "started").await;
    cluster.until(other, "without it", |status| is_gone(status, &name)).await;
    assert_ne!(cluster.leader(other).await, leader);
    cluster.cloud.finish(&id).await;
    cluster.until_stage(other, &id, "closed").await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_cancelled_removes_nobody() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("never"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Terminate", "vm": 1 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.cloud.cancel(&id).await;
    cluster.closed_everywhere(&id).await;
    cluster.a_few_polls_later().await;
    let status = cluster.status(0).await.unwrap();
    assert!(status.replicas.iter().all(|replica| replica.voter), "{status:#?}");
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
}
