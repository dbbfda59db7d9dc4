//! A replica of three or more approves nothing by itself without a quorum. An operator may approve an event there.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::json;

use super::cluster::Cluster;
use super::operators::{done, happened, refused, waits_for, who};
use super::workload::hook;

#[tokio::test(flavor = "multi_thread")]
async fn a_minority_approves_nothing_and_leaves_the_event_to_the_others() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .also("cluster.takeover_after", "2s")
        .also("policy.user_budget", "1s")
        .with_links()
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let (left, affected) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.cut_off(left);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.until_stage(leader, &id, "started").await;
    let is_started = |event: &Event| event.status.as_deref() == Some("Started");
    cluster.until_event(left, &id, "started", is_started).await;
    cluster.heal();
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_three_approves_only_by_an_operators_word_and_tells_the_others_who_gave_it() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain").waits_for("never")])
        .also("cluster.takeover_after", "2s")
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let (left, affected) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected, "notice": "15m" })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let out = done(&cluster, affected, &["hold", &id, "--until", "1h", "--reason", "the backup has to end first"]);
    assert!(!out.contains("not acknowledged"), "{out}");
    let led = refused(&cluster, left, &["approve", &id, "--alone", "--revision", "1", "--reason", "too early"]);
    assert!(led.contains("follows a leader"), "{led}");

    cluster.kill(leader);
    cluster.kill(affected);
    let is_offered = |event: &Event| {
        let blocker = event.blocker.as_ref().filter(|_| waits_for(event, "no_quorum"));
        blocker.is_some_and(|blocker| blocker.isolated_approval.is_some())
    };
    let event = cluster.until_event(left, &id, "offered to an operator", is_offered).await;
    assert_eq!(event.approvals.len(), 0, "{event:#?}");
    let revision = event.revision.to_string();
    let approve = ["approve", &id, "--alone", "--revision", &revision, "--reason", "db-0 has to come back"];
    let (_, explained, _) = cluster.says(left, &["explain", &id]);
    let words = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&approve[..3].join(" ")) && !words.contains("--alone --revision"), "{explained}");
    assert!(words.contains("first ask the other replicas, on the VMs of db-"), "{explained}");
    assert!(words.contains("knows: the other voters may have a quorum, and decide otherwise; "), "{explained}");

    // Without the revision nothing is approved, and the reply names the hold that the dead replicas acknowledged.
    let told = refused(&cluster, left, &["approve", &id, "--alone", "--reason", "db-0 has to come back"]);
    let hold = format!("the event is held by {}: the backup has to end first", who(affected));
    assert!(told.contains(&hold) && told.contains("a hook of the event may still run"), "{told}");
    assert!(told.contains(&format!("--revision {revision}")), "{told}");
    assert!(words.contains(&hold), "{explained}");
    let stale = (event.revision + 7).to_string();
    let changed = refused(&cluster, left, &["approve", &id, "--alone", "--revision", &stale, "--reason", "now"]);
    assert!(changed.contains(&format!("at revision {revision} now")), "{changed}");
    assert_eq!(cluster.cloud.posts().await.len(), 0);

    let out = done(&cluster, left, &approve);
    assert!(out.contains("approved without a quorum"), "{out}");
    assert_eq!(cluster.cloud.posted_by().await, [format!("db-{left}")]);
    let again = refused(&cluster, left, &approve);
    assert!(again.contains("approved already") || again.contains("not list the event as Scheduled"), "{again}");

    cluster.start(leader);
    cluster.start(affected);
    cluster.ready().await;
    let given = format!("approved on db-{left} alone by {}", who(left));
    for place in [leader, affected] {
        let is_told = |event: &Event| happened(event, [&given, "db-0 has to come back"]);
        let event = cluster.until_event(place, &id, "told who approved it", is_told).await;
        assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "operator"), "{event:#?}");
    }
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

/// The time of a cluster stands still while no replica runs, and a replica without a quorum does not learn of that.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_starts_alone_says_that_less_time_is_left_than_it_tells() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain").waits_for("never")])
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1, "notice": "15m" })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.until_event(0, &id, "known to db-0", |event: &Event| !event.hooks.is_empty()).await;
    for place in [0, 1, 2] {
        cluster.kill(place);
    }
    // The time that the replica misses.
    tokio::time::sleep(Duration::from_secs(4)).await;
    cluster.start(0);
    let is_told = |event: &Event| {
        let blocker = event.blocker.as_ref().filter(|blocker| blocker.code == "no_quorum");
        blocker.is_some_and(|blocker| blocker.message.contains("s behind: if it is right, less time is left"))
    };
    cluster.until_event(0, &id, "with times that are behind", is_told).await;
    let (_, status, _) = cluster.says(0, &["status"]);
    assert!(status.contains("has no time from the cluster"), "{status}");
    cluster.start(1);
    cluster.start(2);
    cluster.until(0, "a quorum", |status| status.quorum).await;
    let is_right = |event: &Event| event.blocker.as_ref().is_none_or(|it| !it.message.contains("s behind"));
    cluster.until_event(0, &id, "with the cluster's time", is_right).await;
}
