//! Clusters that start for the first time while their documents list an event already.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::workload::{hook, usual_hooks};

async fn cold() -> Cluster {
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", usual_hooks()).cold().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_scheduled_before_the_first_start_is_prepared_and_approved_once() {
    let mut cluster = cold().await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0 })).await;
    cluster.start_all();
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "failover", "drain", "shutdown", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_has_started_before_the_first_start_is_not_approved_and_ends() {
    let mut cluster = cold().await;
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": 0, "opens": "Started" });
    let id = cluster.cloud.announce(order).await;
    cluster.start_all();
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!((event.approvals.len(), event.start_cause.as_deref()), (0, Some("platform")));
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.outcome.as_deref(), Some("completed"));
    assert_eq!(cluster.hooks.begun(), [""; 0], "a hook ran on a VM that was taken already");
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_missing_at_the_first_start_does_not_let_the_others_decide_without_it() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![hook("drain")]).cold().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 2 })).await;
    cluster.start(0);
    cluster.start(1);
    let waits =
        |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("db-2 does not answer"));
    cluster.until(0, "waiting for the third", waits).await;
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    cluster.start(2);
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_waits_for_the_replica_of_its_vm_to_say_what_runs_there() {
    let four = Cluster::of(&["db-0", "db-1", "db-2", "db-3"]).also("cluster.max_voters", "3");
    let mut cluster = four.workload("database", vec![hook("drain")]).cold().await;
    for voter in 0..3 {
        cluster.start(voter);
    }
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 3 })).await;
    let waits = |event: &Event| {
        let blocker = event.blocker.as_ref().filter(|blocker| blocker.code == "hook_waiting");
        blocker.is_some_and(|blocker| {
            blocker.message.starts_with("the replica on db-3 has not registered its workloads yet")
        })
    };
    cluster.until_event(0, &id, "waiting for db-3", waits).await;
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    cluster.start(3);
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
