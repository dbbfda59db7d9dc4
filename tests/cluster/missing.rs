//! An event that no document lists for a few seconds, and that is then listed again: nothing is restored, no other
//! event is approved instead, and the event goes on.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::workload::hook;

/// Durations for which documents lack the event, one after the other.
const SECONDS: [u64; 3] = [1, 3, 9];

/// One member of three may be out; the timeouts are the defaults of the configuration.
async fn three() -> Cluster {
    let hooks = vec![hook("drain"), hook("shutdown").waits_for("gate"), hook("restore")];
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks);
    plan.also("metadata.poll_interval", "1s").also("metadata.gone_after", "10s").start().await
}

fn redeploy(vm: usize) -> Value {
    json!({ "type": "Redeploy", "source": "Platform", "vm": vm, "notice": "10m", "start_delay": "1h" })
}

/// Removes the event from all documents for `seconds`.
async fn is_missing_for(cluster: &Cluster, id: &str, seconds: u64) {
    cluster.cloud.fault(json!({ "on": "get", "fault": { "kind": "lacks", "event": id } })).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    cluster.cloud.clear_faults_of_gets().await;
    cluster.a_few_polls_later().await;
}

/// The event that waits behind the missing event has not begun.
async fn waits(cluster: &Cluster, other: &str) {
    let event = cluster.event(0, other).await.unwrap();
    assert!(event.hooks.is_empty(), "{event:#?}");
    assert!(cluster.cloud.approvals(other).is_empty());
}

/// The event is approved, and the VM was prepared once.
async fn goes_on(cluster: &Cluster, id: &str) -> Event {
    cluster.hooks.open("gate");
    let event = cluster.until_stage(0, id, "approved").await;
    let begun: Vec<&str> = event.hooks.iter().map(|hook| hook.phase.as_str()).collect();
    assert_eq!(begun, ["drain", "shutdown"], "{event:#?}");
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_missing_before_anything_was_begun_for_it_is_begun_when_it_is_back() {
    crate::left_out::long!();
    let cluster = three().await;
    let first = cluster.cloud.announce(redeploy(0)).await;
    cluster.until_true("the first one's turn", async || cluster.hooks.begun() == ["drain", "shutdown"]).await;
    let id = cluster.cloud.announce(redeploy(1)).await;
    cluster.seen_by_all(&id).await;
    for seconds in SECONDS {
        is_missing_for(&cluster, &id, seconds).await;
        waits(&cluster, &id).await;
    }
    goes_on(&cluster, &first).await;
    cluster.cloud.start(&first).await;
    cluster.cloud.finish(&first).await;
    goes_on(&cluster, &id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_missing_while_it_is_prepared_goes_on_when_it_is_back() {
    let cluster = three().await;
    let id = cluster.cloud.announce(redeploy(0)).await;
    cluster.until_true("the shutdown", async || cluster.hooks.begun() == ["drain", "shutdown"]).await;
    let other = cluster.cloud.announce(redeploy(1)).await;
    cluster.seen_by_all(&other).await;
    for seconds in SECONDS {
        is_missing_for(&cluster, &id, seconds).await;
        assert_eq!(cluster.event(0, &id).await.unwrap().stage, "preparing");
        waits(&cluster, &other).await;
    }
    goes_on(&cluster, &id).await;
    waits(&cluster, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_more_is_taken_away_while_the_event_is_missing() {
    let hooks = vec![hook("drain").waits_for("drained"), hook("shutdown"), hook("restore")];
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks);
    let cluster = plan.also("metadata.gone_after", "30s").start().await;
    let id = cluster.cloud.announce(redeploy(0)).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.cloud.fault(json!({ "fault": { "kind": "lacks", "event": id } })).await;
    let is_missing = |event: &Event| event.status.as_deref() == Some("missing");
    cluster.until_event(0, &id, "missing", is_missing).await;
    cluster.hooks.open("drained");
    let is_done = |event: &Event| event.hooks[0].outcome.as_deref() == Some("done");
    let event = cluster.until_event(0, &id, "drained", is_done).await;
    let waits_for = event.blocker.unwrap();
    assert!(waits_for.message.starts_with("no document lists the event any more"), "{waits_for:?}");
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    cluster.cloud.clear_faults().await;
    cluster.until_stage(0, &id, "approved").await;
    assert_eq!(cluster.hooks.begun(), ["drain", "shutdown"]);
}

/// The event goes on, regardless of the outcome of the first posts.
async fn goes_on_while_posts(fault: Value, stages: [&str; 2]) {
    let cluster = three().await;
    cluster.cloud.fault(json!({ "on": "post", "fault": fault })).await;
    let id = cluster.cloud.announce(redeploy(0)).await;
    cluster.hooks.open("gate");
    cluster.until_true("a post", async || !cluster.cloud.posts().await.is_empty()).await;
    let other = cluster.cloud.announce(redeploy(1)).await;
    for seconds in SECONDS {
        cluster.until_event(0, &id, "on its way", |event| stages.contains(&event.stage.as_str())).await;
        is_missing_for(&cluster, &id, seconds).await;
        waits(&cluster, &other).await;
    }
    cluster.cloud.clear_faults().await;
    goes_on(&cluster, &id).await;
    waits(&cluster, &other).await;
    let effective = cluster.cloud.approvals(&id).iter().filter(|post| post.took_effect).count();
    assert!(effective >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_missing_while_its_approval_is_posted_goes_on_when_it_is_back() {
    crate::left_out::long!();
    goes_on_while_posts(json!({ "kind": "hang" }), ["claimed"; 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_missing_while_its_approval_is_refused_goes_on_when_it_is_back() {
    crate::left_out::long!();
    goes_on_while_posts(json!({ "kind": "status", "status": 429 }), ["claimed", "preparing"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_event_that_is_missing_stays_approved() {
    crate::left_out::long!();
    let cluster = three().await;
    let id = cluster.cloud.announce(redeploy(0)).await;
    goes_on(&cluster, &id).await;
    let other = cluster.cloud.announce(redeploy(1)).await;
    cluster.seen_by_all(&other).await;
    for seconds in SECONDS {
        is_missing_for(&cluster, &id, seconds).await;
        goes_on(&cluster, &id).await;
        waits(&cluster, &other).await;
    }
    assert_eq!(cluster.cloud.approvals(&id).len(), 1);
}
