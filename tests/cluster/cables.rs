//! The tests of cut links, on a network that the kernel cuts. Skipped with a message where namespaces cannot be made.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::json;

use super::cluster::Cluster;
use super::namespaces::Namespaces;
use super::workload::hook;

#[tokio::test]
async fn a_leader_whose_cable_is_pulled_is_replaced_and_the_event_is_approved_once() {
    let namespaces = match Namespaces::make(3) {
        Ok(namespaces) => namespaces,
        Err(why) => return crate::left_out::is_forbidden(&format!("network namespaces ({why})")),
    };
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![hook("drain").waits_for("gate")]);
    let plan = plan.may_lose(2, "database");
    let cluster = plan.within(namespaces).start().await;
    let namespaces = cluster.namespaces.as_ref().unwrap();
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    namespaces.cut_off(leader);
    cluster.hooks.open("gate");
    cluster.until_stage(other, &id, "started").await;
    assert_ne!(cluster.cloud.posted_by().await, [format!("db-{leader}")]);
    cluster.until(leader, "alone", |status: &Status| !status.quorum).await;
    namespaces.heal(leader);
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
