//! The whole course of an event without failures.

use serde_json::json;

use super::cluster::Cluster;
use super::workload::{hook, usual_hooks};

#[tokio::test]
async fn a_user_reboot_runs_the_hooks_in_order_gets_one_approval_and_is_put_back() {
    let mut hooks = usual_hooks();
    hooks[3] = hooks[3].clone().waits_for("gate");
    let cluster = Cluster::with_hooks(hooks).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": "db-0" })).await;
    cluster.seen_by_all(&id).await;
    cluster.hooks.open("gate");
    cluster.until_stage(1, &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["checkpoint", "failover", "drain", "shutdown"]);
    cluster.cloud.finish(&id).await;

    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.ended(), ["checkpoint", "failover", "drain", "shutdown", "restore"]);
    let outcomes: Vec<_> = event.hooks.iter().map(|hook| (hook.on.as_str(), hook.outcome.as_deref())).collect();
    assert_eq!(outcomes, [("db-0", Some("done")); 5]);
    assert_eq!((event.outcome.as_deref(), event.start_cause.as_deref()), (Some("completed"), Some("approved")));
    let posts = cluster.cloud.posts().await;
    assert_eq!(posts.len(), 1);
    assert_eq!(posts[0]["approval"]["took_effect"], true);
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(event.approvals[0].outcome.as_deref(), Some("accepted"));
    assert_eq!(event.approvals[0].reason, "prepared");
    assert_ne!(event.approvals[0].approver, "db-0", "an affected replica posted though others could");
    let last_hook =
        event.hooks.iter().filter(|hook| hook.phase != "restore").filter_map(|hook| hook.ended_at.clone()).max();
    assert!(last_hook.unwrap() <= event.approvals[0].claimed_at);
}

#[tokio::test]
async fn without_hooks_an_event_is_approved_at_once() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let id =
        cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "24h" })).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.approvals[0].reason, "nothing_to_prepare");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_cluster_of_one_does_the_whole_job() {
    let cluster = Cluster::of(&["db-0"]).workload("database", usual_hooks()).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    assert_eq!(cluster.hooks.ended().len(), 5);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_workload_waits_for_the_one_it_names() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("cache", vec![hook("drain").waits_for("gate")])
        .workload_after("cache", "database", vec![hook("checkpoint")])
        .workload("queue", vec![hook("failover")])
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    // The queue is prepared beside the cache, the database not yet.
    cluster.until_true("the queue", async || cluster.hooks.ended() == ["failover"]).await;
    cluster.a_few_polls_later().await;
    assert!(!cluster.hooks.begun().contains(&"checkpoint".to_owned()));
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["failover", "drain", "checkpoint"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_replica_that_is_stopped_ends_within_five_seconds_and_leaves_no_event_undone() {
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": "db-0" })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let (took, status) = cluster.stop(0);
    assert!(status.success(), "{status}");
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    cluster.start(0);
    cluster.ready().await;
    cluster.hooks.open("gate");
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

/// Errors wake people. An event, and the stop of one replica after the other, are no reason.
#[tokio::test]
async fn a_clean_life_and_a_clean_stop_leave_no_error_in_the_log() {
    let default = || vec![("ALLCLEAR_LOG", String::new()), ("RUST_LOG", String::new())];
    let hooks = vec![hook("drain"), hook("restore")];
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks);
    let mut cluster = plan.environments(vec![default(), default(), default()]).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    for place in 0..3 {
        let (_, status) = cluster.stop(place);
        assert!(status.success(), "{status}");
    }
    for place in 0..3 {
        let log = cluster.log(place);
        let errors: Vec<_> = log.lines().filter(|line| line.contains("\"level\":\"ERROR\"")).collect();
        assert!(log.contains("\"level\":\"INFO\"") && errors.is_empty(), "{errors:#?}");
    }
}
