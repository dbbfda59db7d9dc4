//! Replicas that are killed, frozen or all gone, in the middle of an event.

use std::time::Instant;

use serde_json::json;

use super::cluster::Cluster;
use super::workload::hook;

#[tokio::test]
async fn a_hook_goes_on_when_its_leader_is_killed_and_the_next_leader_approves_once() {
    let mut cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let other = (leader + 1) % 3;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    let began = Instant::now();
    cluster.kill(leader);
    cluster
        .until(other, "led by another", |status| {
            status.quorum && status.leader.as_ref().is_some_and(|name| *name != format!("db-{leader}"))
        })
        .await;
    println!("a new leader after {:?}", began.elapsed());
    cluster.start(leader);
    cluster.ready().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "approved while a hook ran");
    cluster.hooks.open("gate");
    cluster.until_stage(other, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain", "restore"], "a hook ran twice");
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn settled_hooks_do_not_run_again_when_all_replicas_are_killed_and_started_again() {
    let mut cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 1 })).await;
    let settled = |event: &allclear::wire::pb::allclear::operator::v1::Event| {
        event.hooks.len() == 2 && event.hooks[0].outcome.as_deref() == Some("done")
    };
    cluster.until_event(0, &id, "half prepared", settled).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    for place in 0..3 {
        cluster.kill(place);
    }
    cluster.hooks.open("gate");
    for place in 0..3 {
        cluster.start(place);
    }
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain", "restore"], "a hook ran twice");
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_leader_that_was_frozen_posts_nothing_new() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    // Everything is ready for it to approve, were it not frozen.
    cluster.freeze(leader);
    cluster.hooks.open("gate");
    let event = cluster.until_stage(other, &id, "started").await;
    assert_ne!(event.approvals.last().unwrap().approver, format!("db-{leader}"));
    cluster.thaw(leader);
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn an_affected_machine_that_hangs_is_not_waited_for_when_a_user_reboots_it() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain"), hook("restore")])
        .also("cluster.takeover_after", "3s")
        .start()
        .await;
    let affected = (cluster.leader(0).await + 1) % 3;
    cluster.freeze(affected);
    let other = (affected + 1) % 3;
    cluster
        .until(other, "aware of the silence", |status| status.replicas.iter().any(|replica| !replica.reachable))
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    let event = cluster.until_stage(other, &id, "started").await;
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    cluster.thaw(affected);
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
}

#[tokio::test]
async fn a_leader_that_hears_nobody_posts_nothing_and_starts_no_hook() {
    let cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("shutdown")]).await;
    let leader = cluster.leader(0).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    for other in others {
        cluster.freeze(other);
    }
    cluster.hooks.open("gate");
    cluster.until(leader, "aware of it", |status| !status.quorum).await;
    cluster.until_true("the drain's end", async || cluster.hooks.ended() == ["checkpoint", "drain"]).await;
    let before = cluster.cloud.polls(&format!("db-{leader}")).await;
    cluster.until_true("more polls", async || cluster.cloud.polls(&format!("db-{leader}")).await >= before + 3).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    for other in others {
        cluster.thaw(other);
    }
    cluster.until_stage(others[0], &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["checkpoint", "drain", "shutdown"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
