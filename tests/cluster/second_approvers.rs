//! An approver outside the cluster, for an event under preparation: detected and logged once; no other start of an
//! event is attributed to an outside approver.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::evidence::measured_by;
use super::operators::done;
use super::workload::hook;

const TOLD: &str = "another approver approved event";

/// The lines of all logs with the warning of an outside approver.
fn told(cluster: &Cluster, replicas: usize) -> Vec<String> {
    let logs = (0..replicas).map(|place| cluster.log(place));
    logs.flat_map(|log| log.lines().filter(|line| line.contains(TOLD)).map(String::from).collect::<Vec<_>>()).collect()
}

async fn nobody_is_told_of(cluster: &Cluster, replicas: usize) {
    cluster.a_few_polls_later().await;
    assert_eq!(told(cluster, replicas), [""; 0]);
    for place in 0..replicas {
        assert_eq!(cluster.status(place).await.unwrap().warnings, []);
    }
}

#[tokio::test]
async fn who_approves_beside_the_cluster_is_told_of_once_with_advice() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "notice": "10m" })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.cloud.approve_as("db-1", &id).await;
    let event = cluster.until_stage(2, &id, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("approved_elsewhere"));
    assert_eq!(event.approvals, []);
    cluster.hooks.open("gate");
    for place in 0..3 {
        let status = cluster.until(place, "warning", |status: &Status| status.warnings.len() == 1).await;
        let warning = &status.warnings[0];
        assert_eq!(warning.event, id);
        assert!(
            warning.text.contains("no replica of this cluster approved the event; find the other agent"),
            "{warning:?}"
        );
        assert!(warning.text.contains(", before the end of its notice at 20"), "{warning:?}");
    }
    cluster.until_true("a warning", async || told(&cluster, 3).len() == 1).await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    let step = event.timeline.iter().find(|step| step.who.as_deref() == Some("another approver")).unwrap();
    assert_eq!(step.why.as_deref(), Some("approved_elsewhere"));

    // Another leader does not log the warning again.
    let leader = cluster.leader(0).await;
    done(&cluster, 0, &["leader", "transfer"]);
    cluster.until(leader, "led by another", |status| status.leader.as_deref() != Some(&format!("db-{leader}"))).await;
    cluster.a_few_polls_later().await;
    let told = told(&cluster, 3);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("WARN"), "{told:?}");
    // Once every replica has reconciled with the new leader.
    cluster.until_true("the warning", async || cluster.says(1, &["status"]).1.contains(TOLD)).await;
}

#[tokio::test]
async fn nobody_is_suspected_of_what_the_cluster_approved_itself() {
    let cluster = Cluster::with_hooks(vec![hook("drain"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "notice": "10m" })).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    measured_by(&cluster, 1, &id).await;
    nobody_is_told_of(&cluster, 3).await;
}

#[tokio::test]
async fn nobody_is_suspected_of_what_a_replica_approved_alone() {
    let mut cluster = Cluster::of(&["db-0", "db-1"])
        .workload("database", vec![hook("drain")])
        .also("cluster.takeover_after", "2s")
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let alone = 1 - leader;
    cluster.kill(leader);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader, "notice": "10m" })).await;
    cluster.until_event(alone, &id, "started", |event| event.status.as_deref() == Some("Started")).await;
    cluster.start(leader);
    cluster.ready().await;
    // The restarted replica polls the event before the approver is known to this replica.
    let is_accounted_for = |event: &Event| event.start_cause.as_deref() == Some("approved");
    cluster.until_event(leader, &id, "as approved by this cluster", is_accounted_for).await;
    nobody_is_told_of(&cluster, 2).await;
}

#[tokio::test]
async fn nobody_is_suspected_where_the_notice_ended() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": 0, "notice": "12s" });
    let id = cluster.cloud.announce(order).await;
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("notice_expired"));
    cluster.hooks.open("gate");
    nobody_is_told_of(&cluster, 3).await;
}
