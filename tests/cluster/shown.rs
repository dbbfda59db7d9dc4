//! What operators see while an event is under way: over HTTP, and from the commands.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::evidence::measured_by;
use super::workload::hook;

#[tokio::test]
async fn every_replica_shows_the_same_event_over_http_and_to_the_commands() {
    let cluster = Cluster::with_hooks(vec![hook("failover"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["failover", "drain"]).await;

    // a leader that was elected meanwhile has to hear of it first
    cluster.until(1, "told how db-2 fares", |status| status.replicas[2].metadata == "healthy").await;
    let status: Value = serde_json::from_str(&cluster.page(1, "/v1/status").await.1).unwrap();
    assert_eq!(status["replica"], "db-1");
    assert_eq!(status["quorum"], true);
    assert_eq!(status["paused"], Value::Null);
    assert_eq!(status["replicas"][2]["metadata"], "healthy");
    assert_eq!(status["workloads"][0]["phases"], json!(["failover", "drain", "restore"]));
    let event = &status["events"][0];
    assert_eq!((&event["id"], &event["type"], &event["source"]), (&json!(id), &json!("Redeploy"), &json!("User")));
    assert_eq!((&event["status"], &event["stage"]), (&json!("Scheduled"), &json!("preparing")));
    assert_eq!(event["duration_s"], -1);
    assert_eq!(event["blocker"]["code"], "hook_running");
    assert_eq!(event["hooks"][0]["outcome"], "done");
    assert_eq!(event["hooks"][1]["outcome"], Value::Null);

    let (code, out, err) = cluster.says(2, &["explain", &id]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("the drain hook of database on db-0 runs on db-0"), "{out}");
    let (code, out, _) = cluster.says(0, &["status", "--json"]);
    assert_eq!(code, 0);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["events"][0]["hooks"], event["hooks"]);

    assert_eq!(cluster.page(0, "/livez").await, (200, "ok\n".into()));
    assert_eq!(cluster.page(0, "/readyz").await, (200, "ok\n".into()));
    assert_eq!(cluster.page(0, "/v1/events/nobody-knows").await.0, 404);
    let (code, _, err) = cluster.says(0, &["explain", "nobody-knows"]);
    assert_eq!(code, 1);
    assert!(err.contains("nobody-knows"), "{err}");

    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    measured_by(&cluster, 2, &id).await;
    let whole: Value = serde_json::from_str(&cluster.page(2, &format!("/v1/events/{id}")).await.1).unwrap();
    assert_eq!((&whole["outcome"], &whole["start_cause"]), (&json!("completed"), &json!("approved")));
    let list: Value = serde_json::from_str(&cluster.page(2, "/v1/events").await.1).unwrap();
    assert_eq!(list["events"][0], whole);
    let (_, out, _) = cluster.says(2, &["events"]);
    assert!(out.contains("closed, completed, started because: approved"), "{out}");
}

#[tokio::test]
async fn a_replica_without_a_quorum_says_so_and_is_not_ready() {
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0 })).await;
    cluster.until_stage(0, &id, "preparing").await;
    cluster.kill(1);
    cluster.kill(2);
    let event = cluster
        .until_event(0, &id, "without a quorum", |event| {
            event.blocker.as_ref().is_some_and(|blocker| blocker.code == "no_quorum")
        })
        .await;
    assert_eq!(event.stage, "preparing");
    assert_eq!(cluster.page(0, "/readyz").await.0, 503);
    assert_eq!(cluster.page(0, "/livez").await.0, 200);
    let (code, _, err) = cluster.says(1, &["status"]);
    assert_eq!(code, 3);
    assert!(err.contains("no replica answers"), "{err}");
    cluster.hooks.open("gate");
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "posted without a quorum");
}
