//! Events of every shape: cancelled, started, moved, seen by few, several at once, for others.

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::json;

use super::cluster::Cluster;
use super::workload::{hook, usual_hooks};

#[tokio::test]
async fn a_cancelled_event_is_not_approved_and_what_was_begun_is_put_back() {
    let cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("never"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    cluster.cloud.cancel(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!((event.outcome.as_deref(), event.start_cause), (Some("cancelled"), None));
    let outcomes: Vec<_> = event.hooks.iter().map(|hook| (hook.phase.as_str(), hook.outcome.as_deref())).collect();
    assert_eq!(outcomes, [("checkpoint", Some("done")), ("drain", Some("cancelled")), ("restore", Some("done"))]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test]
async fn an_approved_event_that_azure_cancels_is_not_said_to_have_started() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "start_delay": 3_600_000 })).await;
    cluster.until_approved(1, &id).await;
    cluster.cloud.cancel(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!((event.outcome.as_deref(), event.start_seen), (Some("completed"), false));
    let (_, listed, _) = cluster.says(1, &["events"]);
    let (_, explained, _) = cluster.says(1, &["explain", &id]);
    for said in [listed, explained] {
        let is_told = said.contains("closed, over after its approval; no start was seen");
        assert!(is_told && !said.contains("started because"), "{said}");
    }
}

#[tokio::test]
async fn an_event_that_is_started_when_it_is_first_seen_is_not_approved() {
    let cluster = Cluster::with_hooks(usual_hooks()).await;
    let id =
        cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 2, "opens": "Started" })).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!((event.outcome.as_deref(), event.start_cause.as_deref()), (Some("completed"), Some("platform")));
    assert_eq!(cluster.hooks.begun(), [""; 0], "a hook ran on a VM that was taken already");
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test]
async fn a_failover_that_another_vm_can_run_is_run_for_a_vm_that_is_gone_already() {
    let cluster = Cluster::with_hooks(vec![hook("failover").with("runs_on = \"peer\""), hook("restore")]).await;
    let id =
        cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 2, "opens": "Started" })).await;
    let event = cluster.until_event(1, &id, "failed over", |event| !event.hooks.is_empty()).await;
    assert_ne!(event.hooks[0].on, "db-2");
    assert_eq!(event.hooks[0].vm, "db-2");
    cluster.until_true("the failover", async || cluster.hooks.ended() == ["failover"]).await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.ended(), ["failover", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test]
async fn an_event_that_only_one_vm_sees_is_prepared_approved_and_ended_by_what_that_one_sees() {
    let cluster = Cluster::with_hooks(usual_hooks()).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 1, "seen_by": 1 })).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.seen_by, ["db-1"]);
    assert_eq!(event.approvals[0].approver, "db-1");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn several_vms_in_one_event_are_all_prepared_before_the_one_approval() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vms": [0, 2] })).await;
    cluster.seen_by_all(&id).await;
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["drain", "drain"]);
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    let mut on: Vec<_> = event.hooks.iter().map(|hook| (hook.phase.as_str(), hook.on.as_str())).collect();
    on.sort_unstable();
    assert_eq!(on, [("drain", "db-0"), ("drain", "db-2"), ("restore", "db-0"), ("restore", "db-2")]);
    assert_eq!(event.approvals[0].approver, "db-1");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn several_events_at_once_take_one_member_of_a_group_after_the_other() {
    let cluster = Cluster::with_hooks(vec![hook("drain"), hook("restore")]).await;
    let mut ids = Vec::new();
    for (vm, kind) in [(0, "Reboot"), (1, "Redeploy"), (2, "Freeze")] {
        ids.push(cluster.cloud.announce(json!({ "type": kind, "source": "Platform", "vm": vm })).await);
    }
    // Each event is prepared and approved after the restore of the event before.
    for count in 1..=ids.len() {
        let is_started = |event: &Event| event.stage == "started";
        let status = cluster.until(0, "under way", |status| status.events.iter().any(is_started)).await;
        cluster.a_few_polls_later().await;
        assert_eq!(cluster.cloud.posts().await.len(), count, "two members of the group are gone at once");
        let drains = cluster.hooks.begun().iter().filter(|hook| *hook == "drain").count();
        assert_eq!(drains, count, "a hook stops a member while another one is out");
        let event = status.events.iter().find(|event| is_started(event)).unwrap();
        cluster.cloud.finish(&event.id).await;
        let event = cluster.closed_everywhere(&event.id).await;
        assert_eq!(event.start_cause.as_deref(), Some("approved"));
    }
    assert_eq!(cluster.cloud.posts().await.len(), 3);
}

#[tokio::test]
async fn an_event_that_waits_for_another_of_its_group_says_so() {
    let cluster = Cluster::with_hooks(vec![hook("drain")]).await;
    let first = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_stage(1, &first, "started").await;
    let second = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "budget");
    let event = cluster.until_event(2, &second, "held back", waits).await;
    let message = event.blocker.unwrap().message;
    assert!(message.contains("databases") && message.contains(&first), "{message}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    cluster.cloud.finish(&first).await;
    cluster.until_stage(2, &second, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 2);
}

#[tokio::test]
async fn a_changed_not_before_is_taken_over() {
    let cluster = Cluster::with_hooks(vec![hook("drain")]).await;
    let id =
        cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "notice": "48h" })).await;
    let far = cluster
        .until_event(0, &id, "put off", |event| {
            event.blocker.as_ref().is_some_and(|blocker| blocker.code == "too_early")
        })
        .await;
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    cluster.cloud.change(&id, json!({ "notice": "10m" })).await;
    let near = cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["drain"]);
    assert!(near.not_before < far.not_before, "{near:?}");
}

#[tokio::test]
async fn a_hook_that_runs_is_stopped_when_a_changed_not_before_leaves_it_less_time() {
    let slow = hook("drain").waits_for("never").with("timeout = \"9m\"");
    let cluster = Cluster::with_hooks(vec![slow, hook("restore")]).await;
    let id =
        cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "notice": "10m" })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.cloud.change(&id, json!({ "notice": "9s" })).await;
    let stopped = |event: &Event| event.hooks.iter().any(|hook| hook.outcome.is_some());
    let event = cluster.until_event(0, &id, "out of time", stopped).await;
    assert_eq!(event.hooks[0].outcome.as_deref(), Some("timed_out"));
    assert_eq!(event.approvals.len(), 0);
}

#[tokio::test]
async fn vm1_is_not_vm10_and_neither_case_nor_an_old_underscore_makes_another_vm() {
    let cluster = Cluster::of(&["vm1", "vm10", "VM_2"])
        .workload("database", vec![hook("drain").waits_for("gate"), hook("restore")])
        .also("metadata.api_version", "2017-03-01")
        .start()
        .await;
    // This api-version puts an underscore before the names and reports no source.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vms": ["vm10", "vm_2"] })).await;
    cluster.seen_by_all(&id).await;
    cluster.hooks.open("gate");
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.resources, ["_vm10", "_vm_2"]);
    let mut on: Vec<_> = event.hooks.iter().map(|hook| hook.on.as_str()).collect();
    on.sort_unstable();
    assert_eq!(on, ["VM_2", "vm10"]);
    assert_eq!(event.approvals[0].approver, "vm1", "the one that is not affected");
}

#[tokio::test]
async fn an_event_for_strangers_is_observed_and_nothing_else() {
    let cluster = Cluster::with_hooks(usual_hooks()).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vms": ["web-7"] })).await;
    let event = cluster.until_event(1, &id, "observed", |event| event.treatment.as_deref() == Some("observe")).await;
    assert_eq!(event.blocker.map(|blocker| blocker.code).as_deref(), Some("observing"));
    cluster.a_few_polls_later().await;
    cluster.cloud.start(&id).await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_ne!(event.start_cause.as_deref(), Some("approved"));
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test]
async fn a_stranger_that_a_user_reboots_is_approved_where_the_policy_says_so() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("policy.foreign", "approve-user").start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vms": ["web-7"] })).await;
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(event.approvals[0].reason, "policy");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
