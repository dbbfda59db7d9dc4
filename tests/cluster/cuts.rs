//! Partitioned replicas: which replica leads, which replica posts, and how the cut-off replicas behave.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::json;

use super::approvers::takes_its_document;
use super::cluster::{Cluster, Plan};
use super::workload::hook;

/// Three replicas with an election timeout so long that a loaded machine costs no leader its followers. Yet a
/// replica without contact has campaigned after 2.8 s at the latest, before its silence is noticed after 3 s.
fn patient() -> Plan {
    Cluster::of(&["db-0", "db-1", "db-2"]).also("cluster.election_timeout", "700ms").with_links()
}

fn three() -> Plan {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![hook("drain").waits_for("gate")]);
    plan.may_lose(2, "database").with_links()
}

pub(crate) fn lost_its_leader(status: &Status) -> bool {
    !status.quorum && status.leader.is_none()
}

fn led_by_another(leader: usize) -> impl Fn(&Status) -> bool {
    move |status| status.quorum && status.leader.as_ref().is_some_and(|name| *name != format!("db-{leader}"))
}

/// No replica but `leader` has led since `term`, as every replica reports.
async fn still_led(cluster: &Cluster, leader: usize, term: u64) {
    for place in 0..3 {
        assert_eq!(cluster.leader(place).await, leader, "as {place} sees it");
        assert_eq!(cluster.status(place).await.unwrap().term, term, "as {place} sees it");
    }
}

#[tokio::test]
async fn a_follower_that_is_cut_off_has_no_leader_and_disturbs_nobody_when_it_is_back() {
    let cluster = patient().start().await;
    let leader = cluster.leader(0).await;
    let follower = (leader + 1) % 3;
    let term = cluster.status(leader).await.unwrap().term;
    for is_loud in [false, true] {
        if is_loud {
            cluster.cut_off_loudly(follower);
        } else {
            cluster.cut_off(follower);
        }
        cluster.until(follower, "without a leader", lost_its_leader).await;
        cluster.until(leader, "aware of the silence", |status| !status.replicas[follower].reachable).await;
        cluster.heal();
        cluster.ready().await;
        still_led(&cluster, leader, term).await;
    }
}

/// Cuts only between the leader and one follower.
async fn cut_a_follower_from_the_leader(cut: impl Fn(&Cluster, usize, usize)) {
    let cluster = patient().start().await;
    let leader = cluster.leader(0).await;
    let follower = (leader + 1) % 3;
    let term = cluster.status(leader).await.unwrap().term;
    cut(&cluster, leader, follower);
    cluster.until(follower, "without a leader", lost_its_leader).await;
    cluster.until(leader, "aware of the silence", |status| !status.replicas[follower].reachable).await;
    // A follower that could still send, or receive, until its connections were closed has campaigned only now.
    cluster.a_few_polls_later().await;
    cluster.heal();
    cluster.ready().await;
    still_led(&cluster, leader, term).await;
}

#[tokio::test]
async fn a_follower_that_only_the_leader_cannot_reach_does_not_unseat_it() {
    cut_a_follower_from_the_leader(Cluster::cut).await;
}

#[tokio::test]
async fn a_follower_that_only_does_not_hear_the_leader_does_not_unseat_it() {
    cut_a_follower_from_the_leader(Cluster::cut_one_way).await;
}

#[tokio::test]
async fn a_follower_that_only_the_leader_does_not_hear_does_not_unseat_it() {
    cut_a_follower_from_the_leader(|cluster, leader, follower| cluster.cut_one_way(follower, leader)).await;
}

/// Cuts the leader's links during an event that only other replicas can end.
async fn cut_while_hooks_run(cut: impl Fn(&Cluster, usize)) {
    let cluster = three().start().await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cut(&cluster, leader);
    cluster.hooks.open("gate");
    cluster.until_stage(other, &id, "started").await;
    cluster.until(other, "led by another", led_by_another(leader)).await;
    assert_ne!(cluster.cloud.posted_by().await, [format!("db-{leader}")]);
    cluster.a_few_polls_later().await;
    cluster.heal();
    end(&cluster, &id).await;
}

async fn end(cluster: &Cluster, id: &str) {
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(id).await;
    cluster.closed_everywhere(id).await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_leader_that_is_cut_off_is_replaced_and_posts_nothing() {
    crate::left_out::long!();
    cut_while_hooks_run(Cluster::cut_off).await;
}

#[tokio::test]
async fn a_leader_whose_connections_are_reset_is_replaced_and_posts_nothing() {
    crate::left_out::long!();
    cut_while_hooks_run(Cluster::cut_off_loudly).await;
}

#[tokio::test]
async fn a_leader_that_hears_and_is_not_heard_is_replaced_and_posts_nothing() {
    crate::left_out::long!();
    cut_while_hooks_run(Cluster::mute).await;
}

#[tokio::test]
async fn a_leader_that_is_heard_and_does_not_hear_is_replaced_and_posts_nothing() {
    cut_while_hooks_run(Cluster::deafen).await;
}

/// Cuts the links of a leader with a claim: the fresh document arrives only after the cut, and the leader cannot
/// confirm.
async fn cut_after_the_claim(cut: impl Fn(&Cluster, usize)) {
    let cluster = three().start().await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let vm = format!("db-{leader}");
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.seen_by_all(&id).await;
    let slow = json!({ "kind": "slow", "ms": 2500 });
    cluster.cloud.fault(json!({ "vm": vm, "on": "get", "fault": slow })).await;
    cluster.hooks.open("gate");
    takes_its_document(&cluster, leader, &id, &vm).await;
    cut(&cluster, leader);
    cluster.until_stage(other, &id, "started").await;
    assert_ne!(cluster.cloud.posted_by().await, [vm]);
    cluster.cloud.clear_faults().await;
    cluster.a_few_polls_later().await;
    cluster.heal();
    end(&cluster, &id).await;
}

#[tokio::test]
async fn a_leader_that_is_cut_off_right_after_its_claim_posts_nothing_and_follows_when_it_is_back() {
    cut_after_the_claim(Cluster::cut_off).await;
}

#[tokio::test]
async fn a_leader_that_nobody_hears_right_after_its_claim_posts_nothing_and_follows_when_it_is_back() {
    crate::left_out::long!();
    cut_after_the_claim(Cluster::mute).await;
}

#[tokio::test]
async fn a_leader_that_hears_nobody_right_after_its_claim_posts_nothing_and_follows_when_it_is_back() {
    crate::left_out::long!();
    cut_after_the_claim(Cluster::deafen).await;
}
