//! Approvals through the control plane, when no metadata endpoint works.

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::json;

use super::cluster::Cluster;
use super::plan::Plan;
use super::workload::hook;

fn plan() -> Plan {
    let hooks = vec![hook("drain").waits_for("gate"), hook("restore")];
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).also("metadata.stall_after", "2s")
}

/// Announces an event, and switches off every metadata endpoint while the event is prepared.
async fn blinded(cluster: &Cluster) -> String {
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.until_event(0, &id, "prepared", |event| !event.hooks.is_empty()).await;
    cluster.seen_by_all(&id).await;
    cluster.cloud.fault(json!({ "fault": { "kind": "status", "status": 500 } })).await;
    let event = cluster.until_event(0, &id, "blind", |event| has(event, "no_healthy_channel")).await;
    let by_hand = event.blocker.iter().chain(&event.other_blockers).find_map(|it| it.approvable_by_hand.as_ref());
    assert_eq!(by_hand, None, "its hook runs still");
    cluster.hooks.open("gate");
    id
}

fn has(event: &Event, code: &str) -> bool {
    event.blocker.iter().chain(&event.other_blockers).any(|blocker| blocker.code == code)
}

#[tokio::test]
async fn a_blind_cluster_approves_once_through_the_control_plane() {
    let cluster = plan().with_last_resort().start().await;
    let id = blinded(&cluster).await;
    let event = cluster.until_stage(0, &id, "approved").await;
    let [approval] = &event.approvals[..] else { panic!("{event:#?}") };
    assert_eq!((approval.outcome.as_deref(), approval.reason.as_str()), (Some("accepted"), "prepared"));
    assert!(approval.detail.as_deref().is_some_and(|it| it.contains("control plane")), "{approval:?}");
    assert_eq!(cluster.hooks.ended(), ["drain"]);
    cluster.cloud.clear_faults().await;
    cluster.until_stage(2, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    let posts = cluster.cloud.posts().await;
    assert_eq!(posts.len(), 1, "{posts:#?}");
    let path = posts[0]["path"].as_str().unwrap();
    assert!(posts[0]["vm"] == "control-plane" && path.contains("/virtualMachines/db-1/providers/"), "{path}");
}

#[tokio::test]
async fn a_blind_cluster_without_the_table_leaves_the_event_to_its_notice() {
    let cluster = plan().start().await;
    let id = blinded(&cluster).await;
    let is_ready = |event: &Event| {
        let is_drained = event.hooks.iter().any(|hook| hook.phase == "drain" && hook.outcome.is_some());
        is_drained && event.blocker.as_ref().is_some_and(|blocker| blocker.code == "no_healthy_channel")
    };
    let event = cluster.until_event(0, &id, "ready", is_ready).await;
    assert_eq!(event.blocker.unwrap().approvable_by_hand.as_deref(), Some("db-1"));
    let (_, text, _) = cluster.says(0, &["explain", &id]);
    assert!(text.contains(&format!("--resource-name db-1 --scheduled-events-id {id}")), "{text}");
    // A document from after the end of the preparation shows that the event waits.
    cluster.cloud.clear_faults().await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.approvals.len(), 1);
    let by = cluster.cloud.posted_by().await;
    assert!(by.len() == 1 && by[0] != "control-plane", "{by:?}");
}
