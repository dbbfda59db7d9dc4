//! Receivers that reject notifications, and replicas without a connection to each other.

use serde_json::json;

use super::cluster::Cluster;
use super::inbox::{Inbox, Mood, Post};
use super::told::{announce_elsewhere, are_cloud_events_told_once, counted, plan, table};
use super::workload::hook;

const LIFE: [&str; 4] = ["announced", "all_clear", "started", "closed"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_that_fail_or_hang_delay_neither_the_event_nor_each_other_and_are_told_later() {
    let (good, failing, hanging) = (Inbox::open().await, Inbox::open().await, Inbox::open().await);
    failing.is_in(Mood::Answers(500));
    hanging.is_in(Mood::Hangs);
    let quiet = format!("topics = {LIFE:?}");
    let tables = [("failing", &failing), ("hanging", &hanging), ("good", &good)];
    let tables: String = tables.iter().map(|(name, inbox)| table(name, &inbox.url, &quiet)).collect();
    let cluster = plan(&tables).start().await;
    cluster.hooks.open("gate");
    let (_, id) = announce_elsewhere(&cluster).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    are_cloud_events_told_once(&good.has(&LIFE).await);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    assert_eq!((failing.taken().len(), hanging.taken().len()), (0, 0));

    failing.until("a second attempt", |posts| posts.len() >= 2).await;
    hanging.until("an attempt", |posts| !posts.is_empty()).await;
    failing.is_in(Mood::Takes);
    hanging.is_in(Mood::Takes);
    for inbox in [&failing, &hanging] {
        let told = inbox.has(&LIFE).await;
        are_cloud_events_told_once(&told);
        let topics: Vec<String> = told.iter().map(Post::topic).collect();
        assert_eq!(topics, LIFE);
        let first = inbox.posts()[0].id();
        assert!(inbox.posts().iter().take_while(|post| post.mood != Mood::Takes).all(|post| post.id() == first));
        assert_eq!(told[0].id(), first);
    }
    assert_eq!(good.posts().len(), LIFE.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_for_good_is_not_told_again_and_holds_up_nothing() {
    let picky = Inbox::open().await;
    let cluster = plan(&table("picky", &picky.url, &format!("topics = {LIFE:?}"))).start().await;
    picky.is_in(Mood::Answers(413));
    cluster.hooks.open("gate");
    let (_, id) = announce_elsewhere(&cluster).await;
    cluster.until_stage(0, &id, "started").await;
    picky.until("three refused", |posts| posts.len() >= 3).await;
    picky.is_in(Mood::Takes);
    cluster.cloud.finish(&id).await;
    picky.has(&["closed"]).await;
    assert!(counted(&picky.posts()).values().all(|count| *count == 1), "{:?}", counted(&picky.posts()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_quorum_is_told_by_all_who_lost_it_under_one_id() {
    let grid = Inbox::open().await;
    let tables = table("grid", &grid.url, "topics = [\"quorum_lost\", \"resolved\"]");
    let vms = ["db-0", "db-1", "db-2", "db-3"];
    let plan = Cluster::of(&vms).workload("database", vec![hook("drain")]);
    let mut cluster = plan.tables(vec![tables; 4]).start().await;
    let leader = cluster.leader(0).await;
    let others: Vec<usize> = (0..4).filter(|place| *place != leader).collect();
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": others[1], "notice": "3h" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    // A follower of the leader does not know that no other replica follows the leader.
    cluster.kill(leader);
    cluster.kill(others[0]);
    let told = grid.until("what both say", |posts| posts.len() >= 2).await;
    let (one, other) = (told[0].json(), told[1].json());
    assert_eq!((&one["id"], &one["source"]), (&other["id"], &other["source"]));
    assert_ne!(one["data"]["told_by"], other["data"]["told_by"]);
    let text = one["data"]["text"].as_str().unwrap();
    assert!(text.contains(&format!("its last known leader is db-{leader}")), "{text}");
    let open =
        format!("; open when it last heard: Reboot of db-{} (event {id}, preparing; its notice ends at ", others[1]);
    assert!(text.contains("; the other replicas may have a quorum, and act") && text.contains(&open), "{text}");
    cluster.start(leader);
    cluster.start(others[0]);
    cluster.ready().await;
    let over = grid.until("the end of the loss", |posts| posts.iter().any(|post| post.topic() == "resolved")).await;
    let over = over.iter().find(|post| post.topic() == "resolved").unwrap().json();
    assert_eq!(over["data"]["resolves"], one["id"]);
    assert!(over["data"]["text"].as_str().unwrap().contains("has a quorum again"), "{over}");
    cluster.a_few_polls_later().await;
    assert_eq!(counted(&grid.posts()).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_given_alone_is_told_at_once_by_its_giver_and_by_nobody_again() {
    let grid = Inbox::open().await;
    let tables = table("grid", &grid.url, "topics = [\"takeover\", \"all_clear\"]");
    let mut cluster =
        Cluster::of(&["db-0", "db-1"]).tables(vec![tables; 2]).also("cluster.takeover_after", "2s").start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    let told = grid.has(&["takeover"]).await;
    assert_eq!(told[0].json()["data"]["told_by"], format!("db-{secondary}"));
    let text = told[0].json()["data"]["text"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!("db-{secondary} approved the event alone")) && text.contains(&id), "{text}");

    cluster.start(leader);
    cluster.ready().await;
    grid.has(&["all_clear"]).await;
    let is_noted = |place| {
        let log = cluster.log(place);
        log.lines().any(|line| line.contains("delivery recorded") && line.contains(&told[0].id()))
    };
    cluster.until_true("a note of it", async || is_noted(secondary)).await;
    cluster.a_few_polls_later().await;
    let again = grid.posts().iter().filter(|post| post.json()["subject"] == id && post.topic() == "takeover").count();
    assert_eq!(again, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_channel_is_told_once() {
    crate::left_out::long!();
    let grid = Inbox::open().await;
    let tables = table("grid", &grid.url, "topics = [\"channel_stalled\", \"resolved\"]");
    let cluster = plan(&tables).also("metadata.stall_after", "3s").start().await;
    let leader = cluster.leader(0).await;
    let name = format!("db-{}", (leader + 1) % 3);
    cluster.cloud.fault(json!({ "vm": name, "on": "get", "fault": { "kind": "hang" } })).await;
    let is_it = |post: &Post| post.json()["subject"] == name;
    let told = grid.until("the stall", |posts| posts.iter().any(is_it)).await;
    let event = told.iter().find(|post| is_it(post)).unwrap().json();
    assert_eq!(event["data"]["replica"], name);
    assert!(event["data"]["text"].as_str().unwrap().contains("has returned no document since"), "{event}");
    cluster.cloud.clear_faults().await;
    let over = grid.until("its end", |posts| posts.iter().any(|post| post.topic() == "resolved")).await;
    let over = over.iter().find(|post| post.topic() == "resolved").unwrap().json();
    assert_eq!((&over["subject"], &over["data"]["resolves"]), (&event["subject"], &event["id"]));
    cluster.a_few_polls_later().await;
    are_cloud_events_told_once(&grid.posts());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_without_documents_is_told_with_the_reason() {
    let grid = Inbox::open().await;
    let tables = table("grid", &grid.url, "topics = [\"channel_stalled\"]");
    let cluster = plan(&tables).also("metadata.stall_after", "3s").start().await;
    cluster.cloud.fault(json!({ "on": "get", "fault": { "kind": "status", "status": 403 } })).await;
    let is_told = |post: &Post| {
        let text = post.json()["data"]["text"].as_str().unwrap_or_default().to_owned();
        text.contains("403") && text.contains("no reachable replica of the cluster receives documents")
    };
    grid.until("that nobody sees events, and why", |posts| posts.iter().any(is_told)).await;
}
