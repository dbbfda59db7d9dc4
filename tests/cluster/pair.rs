//! A pair without a quorum: the isolated approvals of the remaining replica, their time, and the other replica's
//! knowledge of these approvals afterwards.

use std::time::{Duration, Instant};

use allclear::replica::clock;
use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::workload::hook;

fn blocker_says(event: &Event, code: &str, part: &str) -> bool {
    event.blocker.as_ref().is_some_and(|blocker| blocker.code == code && blocker.message.contains(part))
}

#[tokio::test]
async fn of_a_pair_the_secondary_approves_what_a_user_asked_for_when_the_primary_is_gone_and_says_so_afterwards() {
    let mut cluster = Cluster::of(&["db-0", "db-1"]).workload("database", vec![hook("drain")]).start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    let began = Instant::now();
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "no_quorum");
    let event = cluster.until_event(secondary, &id, "waiting for a quorum", waits).await;
    assert!(event.blocker.unwrap().until.is_some(), "it does not tell when it takes over");
    let event = cluster.until_approved(secondary, &id).await;
    let waited = began.elapsed();
    println!("approved alone after {waited:?}");
    assert!(waited >= Duration::from_secs(10), "approved after {waited:?}");
    assert_eq!(event.approvals[0].reason, "takeover");
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);

    // The primary restarts, and receives the approval.
    cluster.start(leader);
    cluster.ready().await;
    cluster.until_stage(leader, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.approvals.len(), 1, "{event:#?}");
    let approval = &event.approvals[0];
    let told = (approval.approver.as_str(), approval.reason.as_str(), approval.outcome.as_deref());
    assert_eq!(told, (format!("db-{secondary}").as_str(), "takeover", Some("accepted")));
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    assert!(event.timeline.iter().any(|step| step.what.contains("decides alone")), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn of_a_pair_the_secondary_leaves_the_platforms_events_alone() {
    let mut cluster = Cluster::of(&["db-0", "db-1"])
        .workload("database", vec![hook("drain")])
        .also("cluster.takeover_after", "2s")
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    let platforms = json!({ "type": "Reboot", "vm": leader, "source": "Platform" });
    let id = cluster.cloud.announce(platforms).await;
    let refuses = |event: &Event| blocker_says(event, "no_quorum", "the event is not user-initiated");
    cluster.until_event(secondary, &id, "left alone", refuses).await;
    // At one poll a second, three times the duration until an isolated approval.
    cluster.a_few_polls_later().await;
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    cluster.cloud.cancel(&id).await;
    let users = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    cluster.until_approved(secondary, &users).await;
    let posts = cluster.cloud.posts().await;
    assert_eq!(posts.len(), 1, "{posts:?}");
    assert!(posts[0].to_string().to_lowercase().contains(&users), "{posts:?}");
}

#[tokio::test]
async fn a_pair_that_is_cut_in_two_approves_once_and_agrees_about_it_afterwards() {
    let cluster = Cluster::of(&["db-0", "db-1"])
        .workload("database", vec![hook("drain")])
        .also("cluster.takeover_after", "3s")
        .with_links()
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.cut_off(leader);
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": leader })).await;
    // The replica of the affected VM waits for the remaining replica.
    for place in [leader, secondary] {
        let started = |event: &Event| event.status.as_deref() == Some("Started");
        cluster.until_event(place, &id, "started", started).await;
    }
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    cluster.heal();
    for place in [leader, secondary] {
        let recorded = |event: &Event| event.stage == "started" && event.approvals.len() == 1;
        cluster.until_event(place, &id, "recorded", recorded).await;
        cluster.until(place, "sure of everybody", |status| status.replicas.iter().all(|each| !each.suspect)).await;
    }
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.approvals[0].approver, format!("db-{secondary}"));
    assert_eq!(event.approvals[0].reason, "takeover");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn an_approval_given_alone_keeps_other_events_of_the_group_waiting_when_the_quorum_is_back() {
    let mut cluster = Cluster::of(&["db-0", "db-1"])
        .workload("database", vec![hook("drain")])
        .also("cluster.takeover_after", "2s")
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    let first = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader, "start_delay": 3_600_000 })).await;
    cluster.until_approved(secondary, &first).await;
    let second = cluster.cloud.announce(json!({ "type": "Reboot", "vm": secondary })).await;
    cluster.start(leader);
    cluster.ready().await;
    let waits = |event: &Event| blocker_says(event, "budget", &first);
    cluster.until_event(leader, &second, "waiting for the first", waits).await;
    cluster.cloud.start(&first).await;
    cluster.cloud.finish(&first).await;
    cluster.until_stage(leader, &second, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 2);
}

#[tokio::test]
async fn a_lone_secondary_that_is_killed_while_it_posts_posts_at_most_once_more() {
    crate::left_out::long!();
    let mut cluster = Cluster::of(&["db-0", "db-1"]).also("cluster.takeover_after", "2s").start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.cloud.fault(json!({ "fault": { "kind": "hang" }, "on": "post", "times": 1 })).await;
    cluster.kill(leader);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    cluster.until_true("its post", async || cluster.cloud.posts().await.len() == 1).await;
    cluster.kill(secondary);
    cluster.start(secondary);
    let event = cluster.until_approved(secondary, &id).await;
    let outcomes: Vec<_> = event.approvals.iter().map(|each| each.outcome.as_deref()).collect();
    assert_eq!(outcomes, [Some("unknown"), Some("accepted")], "{event:#?}");
    cluster.start(leader);
    cluster.ready().await;
    cluster.until_stage(leader, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.approvals.len(), 2, "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 2);
}

#[tokio::test]
async fn a_secondary_whose_primary_never_came_back_from_maintenance_approves_its_reboot() {
    let mut cluster = Cluster::of(&["db-0", "db-1"])
        .workload("database", vec![hook("drain"), hook("restore")])
        .also("cluster.takeover_after", "2s")
        .start()
        .await;
    let primary = cluster.leader(0).await;
    let secondary = 1 - primary;
    let maintenance = cluster.cloud.announce(json!({ "type": "Reboot", "vm": primary, "source": "Platform" })).await;
    cluster.until_stage(secondary, &maintenance, "started").await;
    cluster.kill(primary);
    cluster.cloud.finish(&maintenance).await;
    let reboot = cluster.cloud.announce(json!({ "type": "Reboot", "vm": primary })).await;
    cluster.until_approved(secondary, &reboot).await;
    assert_eq!(cluster.cloud.posts().await.len(), 2);
}

#[tokio::test]
async fn a_lone_secondary_that_was_restarted_goes_on_waiting_and_approves() {
    let mut cluster = Cluster::of(&["db-0", "db-1"]).also("cluster.takeover_after", "8s").start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "no_quorum");
    cluster.until_event(secondary, &id, "waiting", waits).await;
    // A restarted replica counts from its last entry, and forgets the time since that entry.
    let time = |status: &Status| clock::from_rfc3339(&status.now).unwrap();
    let last = time(&cluster.status(secondary).await.unwrap());
    let has_counted = |status: &Status| time(status).since(last) >= Duration::from_secs(3);
    cluster.until(secondary, "three seconds without an entry", has_counted).await;
    cluster.kill(secondary);
    cluster.start(secondary);
    let is_told = |status: &Status| status.warnings.iter().any(|it| it.text.contains("less time is left"));
    cluster.until(secondary, "told that its time is behind", is_told).await;
    let event = cluster.until_approved(secondary, &id).await;
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
