//! Replicas beyond the voters, and the replacement of lost voters without an operator.

use std::time::Duration;

use allclear::consensus::{MemberNames, RaftRole};
use tokio::time::{Instant, sleep};

use crate::consensus::support::{Cluster, LIMIT};

const NINE: [&str; 9] = ["db-0", "db-1", "db-2", "db-3", "db-4", "db-5", "db-6", "db-7", "db-8"];

/// Three of the replicas vote, and a voter is replaced after three seconds of absence.
fn with_three_voters(names: &[&str]) -> Cluster {
    let mut cluster = Cluster::planned(names);
    cluster.max_voters = 3;
    cluster.replace_after = Duration::from_secs(3);
    cluster
}

fn is_learner(role: &RaftRole) -> bool {
    *role == RaftRole::Learner
}

#[tokio::test(flavor = "multi_thread")]
async fn of_nine_replicas_seven_vote_and_two_follow_as_learners() {
    let mut cluster = Cluster::planned(&NINE);
    cluster.start_all().await;
    for learner in ["db-7", "db-8"] {
        cluster.at(learner).until("it learns", |now| is_learner(&now.role) && now.quorum).await;
    }
    let leader = cluster.leader().await;
    let members = cluster.at(&leader).consensus.members();
    assert_eq!(members.voters, NINE[..7]);
    assert_eq!(members.learners, NINE[7..]);
    // Learners propose and read as voters do.
    cluster.propose("db-8", "from a learner").await;
    cluster.at("db-7").consensus.ensure_linearizable().await.unwrap();
    assert_eq!(cluster.at("db-7").lines(), ["from a learner by db-8"]);
    let refused = cluster.at(&leader).consensus.transfer_leadership("db-8").await;
    assert!(refused.is_err(), "a learner was made leader");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_that_starts_late_is_brought_in_when_it_answers() {
    crate::left_out::long!();
    let mut cluster = with_three_voters(&NINE[..5]);
    for name in &NINE[..4] {
        cluster.start(name).await;
    }
    cluster.at("db-3").until("it learns", |now| is_learner(&now.role) && now.quorum).await;
    let leader = cluster.leader().await;
    assert_eq!(cluster.at(&leader).consensus.members().voters, NINE[..3]);
    for line in 0..10 {
        cluster.propose(&leader, &format!("line {line}")).await;
    }
    cluster.start("db-4").await;
    cluster.at("db-4").until("it learns", |now| is_learner(&now.role) && now.quorum).await;
    cluster.at("db-4").until_lines(10).await;
    assert_eq!(cluster.at(&leader).consensus.members().learners, NINE[3..5]);
    // A replica removed on purpose is not added again.
    let wish = cluster.at(&leader).consensus.on_behalf_of("a test");
    wish.remove_member("db-4").await.unwrap();
    let told = |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("was removed"));
    cluster.at("db-4").until("it knows that it was removed", |now| told(&now.role)).await;
    assert_eq!(cluster.at(&leader).consensus.members().learners, NINE[3..4]);
    cluster.stop_all().await;
}

/// Waits until the members known to replica `asked` fulfil `holds`.
async fn until_members(
    cluster: &Cluster,
    asked: &str,
    what: &str,
    holds: impl Fn(&MemberNames) -> bool,
) -> MemberNames {
    let began = Instant::now();
    loop {
        let members = cluster.at(asked).consensus.members();
        if holds(&members) {
            return members;
        }
        assert!(began.elapsed() < LIMIT, "waited for: {what}; {asked} knows {members:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn votes(members: &MemberNames, name: &str) -> bool {
    members.voters.iter().any(|voter| voter == name)
}

/// The leader, and a founder that does not lead.
async fn voter_to_lose(cluster: &Cluster) -> (String, String) {
    let leader = cluster.leader().await;
    let lost = NINE[..3].iter().find(|name| **name != leader).unwrap();
    (leader, (*lost).into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_is_gone_is_replaced_by_a_learner_and_comes_back_as_a_learner() {
    let mut cluster = with_three_voters(&NINE[..5]);
    cluster.start_all().await;
    let (leader, lost) = voter_to_lose(&cluster).await;
    until_members(&cluster, &leader, "two learners", |members| members.learners.len() == 2).await;
    cluster.stop(&lost).await;
    let members = until_members(&cluster, &leader, "its end as a voter", |members| !votes(members, &lost)).await;
    assert!(votes(&members, "db-3"), "the first learner of the configuration takes its place: {members:?}");
    assert_eq!(members.voters.len(), 3);
    assert!(members.learners.contains(&lost), "{members:?}");

    // Without the leader the new voter is one of the two electors of the next leader, once both know of the new voter.
    for knows in cluster.replicas.keys().filter(|name| **name != leader) {
        until_members(&cluster, knows, "its end as a voter", |members| !votes(members, &lost)).await;
    }
    cluster.stop(&leader).await;
    let next = cluster.leader().await;
    cluster.propose(&next, "elected").await;
    // The second loss is repaired, too.
    until_members(&cluster, &next, "the second change", |members| !votes(members, &leader)).await;
    cluster.start(&lost).await;
    cluster.at(&lost).until("it learns", |now| is_learner(&now.role) && now.quorum).await;
    cluster.at(&lost).until_lines(1).await;
    assert_eq!(cluster.at(&next).consensus.members().voters.len(), 3);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_votes_as_soon_as_there_is_room() {
    let mut cluster = with_three_voters(&NINE[..4]);
    cluster.start_all().await;
    let (leader, removed) = voter_to_lose(&cluster).await;
    until_members(&cluster, &leader, "a learner", |members| members.learners == ["db-3"]).await;
    cluster.at(&leader).consensus.remove_member(&removed).await.unwrap();
    let members = until_members(&cluster, &leader, "its vote", |members| votes(members, "db-3")).await;
    assert_eq!((members.voters.len(), members.learners.len()), (3, 0));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_learner_a_voter_that_is_gone_stays_a_voter() {
    let mut cluster = with_three_voters(&NINE[..3]);
    cluster.start_all().await;
    let (leader, lost) = voter_to_lose(&cluster).await;
    cluster.stop(&lost).await;
    let began = Instant::now();
    until_members(&cluster, &leader, "twice the time", |_| began.elapsed() > cluster.replace_after * 2).await;
    assert_eq!(cluster.at(&leader).consensus.members().voters.len(), 3);
    cluster.start(&lost).await;
    cluster.at(&lost).until("it follows", |now| now.role == RaftRole::Follower && now.quorum).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_voter_that_lost_its_disk_comes_back_as_a_new_learner() {
    let mut cluster = with_three_voters(&NINE[..4]);
    cluster.start_all().await;
    let (leader, lost) = voter_to_lose(&cluster).await;
    until_members(&cluster, &leader, "a learner", |members| members.learners == ["db-3"]).await;
    let node = cluster.at(&lost).consensus.node_id();
    cluster.stop(&lost).await;
    std::fs::remove_dir_all(cluster.directory(&lost)).unwrap();
    cluster.start(&lost).await;
    // Another learner is quicker than the lost replica, so its old vote is removed together with its old node.
    cluster.at(&lost).until("it learns", |now| is_learner(&now.role) && now.quorum).await;
    assert_ne!(cluster.at(&lost).consensus.node_id(), node);
    let members = until_members(&cluster, &leader, "its end as a voter", |members| !votes(members, &lost)).await;
    assert_eq!((members.voters.len(), members.learners), (3, vec![lost]));
    cluster
        .until_true("nothing of the lost disk", async |cluster| {
            cluster.at(&leader).consensus.roster().await.iter().all(|seat| seat.node != node)
        })
        .await;
    cluster.stop_all().await;
}
