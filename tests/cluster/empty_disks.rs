//! Machines that return with an empty disk: the replicas vote again automatically, and repeat no hook begun before.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Replica, Status};
use serde_json::json;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::membership::members;
use super::workload::{Hook, hook};

/// Runs until the gate is open, and answers a confirm with done.
fn drain() -> Hook {
    hook("drain").with("timeout = \"10s\"").can_confirm().waits_for("gate")
}

/// The node of `name` votes, and is reconciled.
fn votes(status: &Status, name: &str) -> bool {
    let is_well = |replica: &Replica| replica.voter && replica.reachable && !replica.suspect;
    status.quorum && status.replicas.iter().any(|replica| replica.name == name && is_well(replica))
}

/// The id of the node by which `name` votes, or is about to vote.
fn node(cluster: &Cluster, asked: usize, name: &str) -> String {
    let members = members(cluster, asked);
    let of_name = members.iter().filter(|member| member["name"] == name);
    let member = of_name.max_by_key(|member| member["reachable"] == true).unwrap();
    member["node"].as_str().unwrap().to_owned()
}

/// A cluster with an event in preparation, the affected replica, another replica, and the event's id.
async fn in_the_middle_of_a_hook() -> (Cluster, usize, usize, String) {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![drain(), hook("restore")]);
    let plan = plan.also("cluster.replace_after", "1s").also("cluster.takeover_after", "4s");
    let cluster = plan.also("cluster.election_timeout", "1s").start().await;
    let leader = cluster.leader(0).await;
    let affected = (leader + 1) % 3;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": affected })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    (cluster, affected, leader, id)
}

/// The begun and forgotten hook received a confirm after its deadline, and no second run, and the event went on.
async fn ends_well(cluster: &Cluster, other: usize, id: &str) {
    cluster.until_stage(other, id, "started").await;
    cluster.cloud.finish(id).await;
    let event: Event = cluster.closed_everywhere(id).await;
    assert_eq!(cluster.hooks.asked(), ["run drain", "confirm drain", "run restore"], "{event:#?}");
    let first = &event.hooks[0];
    assert_eq!(first.outcome.as_deref(), Some("unknown"), "{event:#?}");
    assert!(first.reason.as_ref().is_some_and(|why| why.contains("did not say by the deadline")), "{first:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_a_machine_had_begun_is_not_begun_again_when_it_comes_back_with_an_empty_disk() {
    crate::left_out::long!();
    let (mut cluster, affected, other, id) = in_the_middle_of_a_hook().await;
    let name = format!("db-{affected}");
    let old = node(&cluster, other, &name);
    let killed = Instant::now();
    cluster.kill(affected);
    cluster.kill_hooks();
    cluster.lose_disk(affected);
    cluster.hooks.open("gate");
    comes_back(&mut cluster, affected, other, &old, killed).await;
    ends_well(&cluster, other, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_only_what_it_kept_of_its_hooks_is_lost() {
    crate::left_out::long!();
    let (mut cluster, affected, other, id) = in_the_middle_of_a_hook().await;
    cluster.kill(affected);
    cluster.kill_hooks();
    cluster.lose_spool(affected);
    cluster.hooks.open("gate");
    cluster.start(affected);
    ends_well(&cluster, other, &id).await;
}

const FLAG: &str = "--from-this-disk-alone-and-accept-lost-entries";

const TAKEOVER_AFTER: Duration = Duration::from_secs(3);
const CLAIM_LEASE: Duration = Duration::from_secs(2);

/// Three replicas; a lost disk is given up after `TAKEOVER_AFTER`.
async fn three() -> Cluster {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![hook("drain"), hook("restore")]);
    let plan = plan.also("cluster.replace_after", "1s").also("cluster.takeover_after", "3s");
    plan.also("cluster.claim_lease", "2s").start().await
}

/// Starts the replica `lost` with an empty disk. Until the replica votes with this disk, the other replicas can have a
/// quorum at every check. The replica is reconciled only after its possible approvals have shown.
async fn comes_back(cluster: &mut Cluster, lost: usize, other: usize, old: &str, killed: Instant) {
    let name = format!("db-{lost}");
    cluster.start(lost);
    let is_back = async || {
        // The members are queried first: a status from before the change shows the lost node, which was not suspect
        // yet.
        let is_replaced = members(cluster, other).iter().all(|member| member["node"] != old);
        let status = cluster.status(other).await.unwrap();
        // With four voters, one of them gone for good, the other two would have no quorum.
        let voters = status.replicas.iter().filter(|replica| replica.voter).count();
        assert_eq!(voters, 3, "{status:#?}");
        is_replaced && votes(&status, &name)
    };
    cluster.until_true("a voter again", is_back).await;
    assert!(killed.elapsed() >= TAKEOVER_AFTER + CLAIM_LEASE, "it gave account after {:?}", killed.elapsed());
    assert_eq!(members(cluster, other).len(), 3);
    cluster.until(lost, "a follower", |status| status.quorum && status.role != "learner").await;
}

/// With one of the other two replicas down the vote of `lost` is needed, and an event of its own VM is approved once.
async fn is_as_good_as_before(cluster: &mut Cluster, lost: usize, down: usize) {
    cluster.ready().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": lost })).await;
    cluster.until_stage(lost, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
    cluster.kill(down);
    let led = |status: &Status| status.quorum && status.leader.as_ref() != Some(&format!("db-{down}"));
    cluster.until(lost, "led with its vote", led).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_lost_its_disk_votes_again_without_an_operator() {
    let mut cluster = three().await;
    let leader = cluster.leader(0).await;
    let lost = (leader + 1) % 3;
    let old = node(&cluster, leader, &format!("db-{lost}"));
    let killed = Instant::now();
    cluster.kill(lost);
    cluster.lose_disk(lost);
    comes_back(&mut cluster, lost, leader, &old, killed).await;
    is_as_good_as_before(&mut cluster, lost, leader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_the_leader() {
    crate::left_out::long!();
    let mut cluster = three().await;
    let lost = cluster.leader(0).await;
    let other = (lost + 1) % 3;
    let old = node(&cluster, other, &format!("db-{lost}"));
    let killed = Instant::now();
    cluster.kill(lost);
    let led = |status: &Status| status.quorum && status.leader.as_ref().is_some_and(|led| *led != format!("db-{lost}"));
    cluster.until(other, "led by another", led).await;
    cluster.lose_disk(lost);
    comes_back(&mut cluster, lost, other, &old, killed).await;
    is_as_good_as_before(&mut cluster, lost, other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_copy_under_its_name_is_refused_as_it_is_and_both_are_told() {
    let mut cluster = three().await;
    let leader = cluster.leader(0).await;
    let lost = (leader + 1) % 3;
    let old = node(&cluster, leader, &format!("db-{lost}"));
    cluster.kill(lost);
    cluster.lose_disk(lost);
    let copy = cluster.copy(lost);
    cluster.start(copy);
    let waits =
        |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("takes over the vote"));
    cluster.until(copy, "waiting", waits).await;
    cluster.start(lost);
    let refused = format!("more than one replica runs as db-{lost}");
    let is_refused = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains(&refused));
    for place in [lost, copy] {
        cluster.until(place, "refused", is_refused).await;
    }
    cluster.until_true("a warning of the leader", async || cluster.log(leader).contains(&refused)).await;
    // Longer than a single replica of the name would wait.
    let began = Instant::now();
    let neither = async || {
        assert_eq!(node(&cluster, leader, &format!("db-{lost}")), old);
        began.elapsed() > Duration::from_secs(8)
    };
    cluster.until_true("twice the time", neither).await;
    let killed = Instant::now();
    cluster.kill(copy);
    cluster.kill(lost);
    comes_back(&mut cluster, lost, leader, &old, killed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pair_it_waits_until_an_operator_says_that_the_other_disk_is_all_there_is() {
    let mut cluster = Cluster::of(&["db-0", "db-1"]).also("cluster.replace_after", "1s").start().await;
    let left = cluster.leader(0).await;
    let lost = 1 - left;
    cluster.kill(lost);
    cluster.lose_disk(lost);
    cluster.start(lost);
    let told =
        |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("`allclear member restore`"));
    cluster.until(lost, "told what to do", told).await;
    cluster.a_few_polls_later().await;
    let status = cluster.status(lost).await.unwrap();
    assert!(told(&status) && !cluster.status(left).await.unwrap().quorum, "{status:#?}");
    cluster.kill(left);
    assert_eq!(cluster.restore(left, &[FLAG]).0, 0);
    cluster.start(left);
    cluster.until(left, "a pair again", |status| votes(status, &format!("db-{lost}"))).await;
    cluster.ready().await;
}
