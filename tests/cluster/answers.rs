//! Every bad answer of the metadata service, while an event is being prepared.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::workload::hook;

fn bad_answers() -> Vec<Value> {
    let mut faults: Vec<Value> =
        ["empty", "html", "error_json", "malformed", "truncated", "reset", "redirect", "stale", "request_lost"]
            .map(|kind| json!({ "kind": kind }))
            .into();
    faults.extend([400, 404, 405, 410, 429, 500, 503].map(|status| json!({ "kind": "status", "status": status })));
    faults.extend(["document", "incarnation", "events", "event"].map(|of| json!({ "kind": "wrong_types", "of": of })));
    faults.push(json!({ "kind": "oversized", "bytes": 2_000_000 }));
    faults
}

#[tokio::test]
async fn no_bad_answer_ends_an_event_restores_it_or_posts_it_again() {
    crate::left_out::long!();
    let patient = hook("drain").waits_for("gate").with("timeout = \"10m\"");
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![patient, hook("restore")])
        .also("metadata.poll_interval", "100ms")
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    for fault in bad_answers() {
        // Twice in a row, everywhere: two polls without an event are needed before the event counts as gone.
        cluster.cloud.fault(json!({ "fault": fault, "on": "get", "times": 2 })).await;
        for vm in ["db-0", "db-1", "db-2"] {
            let before = cluster.cloud.polls(vm).await;
            cluster
                .until_true(&format!("three polls of {vm} after {fault}"), async || {
                    cluster.cloud.polls(vm).await >= before + 3
                })
                .await;
        }
        let event = cluster.event(1, &id).await.unwrap();
        assert_eq!(event.stage, "preparing", "after {fault}: {event:#?}");
        cluster.cloud.clear_faults().await;
    }
    cluster.cloud.restart_incarnations().await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    cluster.hooks.open("gate");
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_service_that_never_says_anything_is_told_as_a_stalled_channel() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("metadata.stall_after", "2s").start().await;
    cluster.cloud.fault(json!({ "vm": "db-2", "fault": { "kind": "empty" }, "on": "get" })).await;
    let status = cluster
        .until(0, "told about the stall", |status| status.replicas.iter().any(|each| each.metadata == "stalled"))
        .await;
    let stalled: Vec<_> =
        status.replicas.iter().filter(|each| each.metadata == "stalled").map(|each| &each.name).collect();
    assert_eq!(stalled, ["db-2"]);
    // An event is approved by a replica with a working channel.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 2 })).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_ne!(event.approvals[0].approver, "db-2");
}

#[tokio::test]
async fn the_status_tells_why_this_replica_receives_no_documents() {
    let cluster = Cluster::of(&["db-0", "db-1"]).also("metadata.stall_after", "2s").start().await;
    cluster.cloud.fault(json!({ "vm": "db-1", "fault": { "kind": "status", "status": 403 } })).await;
    let why = "this replica receives no documents: the metadata endpoint answered with status 403";
    cluster.until(1, why, |status| status.warnings.iter().any(|warning| warning.text.starts_with(why))).await;
    let (_, line, _) = cluster.says(1, &["status", "--check"]);
    assert!(line.contains("Metadata Security Protocol"), "{line}");
    cluster.cloud.clear_faults().await;
    cluster.until(1, "documents again", |status| status.warnings.is_empty()).await;
}
