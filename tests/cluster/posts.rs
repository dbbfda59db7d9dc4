//! Approvals with a lost request or a lost reply.

use serde_json::json;

use super::cluster::Cluster;

#[tokio::test]
async fn a_reply_that_is_lost_after_the_post_took_effect_leads_to_no_further_post() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    cluster.cloud.fault(json!({ "fault": { "kind": "reply_lost" }, "on": "post", "times": 1 })).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(event.approvals[0].outcome.as_deref(), Some("unknown"));
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_request_that_is_lost_is_posted_again() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    cluster.cloud.fault(json!({ "fault": { "kind": "request_lost" }, "on": "post", "times": 1 })).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    let outcomes: Vec<_> = event.approvals.iter().map(|approval| approval.outcome.as_deref()).collect();
    let posts = cluster.cloud.posts().await;
    assert_eq!(posts.len(), outcomes.len());
    assert_eq!(posts.iter().filter(|post| post["approval"]["took_effect"] == true).count(), 1);
    assert_eq!((outcomes.first(), outcomes.last()), (Some(&Some("unknown")), Some(&Some("accepted"))));
}

#[tokio::test]
async fn a_post_that_one_endpoint_refuses_is_made_by_another_replica() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    // Each endpoint refuses once.
    cluster.cloud.fault(json!({ "fault": { "kind": "status", "status": 500 }, "on": "post", "times": 1 })).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    let event = cluster.until_stage(0, &id, "started").await;
    let approvers: Vec<_> = event.approvals.iter().map(|approval| approval.approver.as_str()).collect();
    let outcomes: Vec<_> = event.approvals.iter().map(|approval| approval.outcome.as_deref().unwrap()).collect();
    assert_eq!(outcomes, ["refused", "refused", "refused", "accepted"]);
    let mut first: Vec<_> = approvers[..3].into();
    first.sort_unstable();
    assert_eq!(first, ["db-0", "db-1", "db-2"], "{approvers:?}");
    assert_eq!(event.approvals[0].detail.as_deref(), Some("HTTP status 500"));
    assert_eq!(cluster.cloud.posts().await.len(), 4);
}
