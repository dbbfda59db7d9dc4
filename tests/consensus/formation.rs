//! Formation of a cluster, which happens once, and the replicas excluded from the cluster.

use std::time::Duration;

use allclear::consensus::{MemberNames, RaftRole, RequestError};

use crate::consensus::support::{Cluster, Replica};

async fn outside(replica: &Replica, because: &str) {
    let told = |role: &RaftRole| matches!(role, RaftRole::Outside(reason) if reason.contains(because));
    replica.until(because, |now| told(&now.role)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_form_only_when_all_of_them_have_answered() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.timing.deadline = Duration::from_secs(1);
    cluster.start("db-1").await;
    cluster.start("db-0").await;
    outside(cluster.at("db-0"), "waiting to form the cluster: db-2 does not answer").await;
    outside(cluster.at("db-1"), "db-2 does not answer").await;
    let refused = cluster.at("db-1").consensus.propose("too early").await;
    assert_eq!(refused, Err(RequestError::NoLeader));

    cluster.start("db-2").await;
    cluster.leader().await;
    let voters = ["db-0", "db-1", "db-2"].map(Into::into).to_vec();
    for replica in cluster.replicas.values() {
        assert_eq!(replica.consensus.members(), MemberNames { voters: voters.clone(), learners: Vec::new() });
    }
    cluster.propose("db-2", "now").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_alone_in_its_configuration_forms_a_cluster_of_one() {
    let mut cluster = Cluster::planned(&["db-0"]);
    cluster.start_all().await;
    assert_eq!(cluster.leader().await, "db-0");
    assert!(cluster.propose("db-0", "alone").await.starts_with("line 1"));
    cluster.at("db-0").consensus.ensure_linearizable().await.unwrap();
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_list_each_other_in_another_order_do_not_form() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    let mut other = cluster.options("db-1");
    other.replicas.reverse();
    cluster.start("db-0").await;
    cluster.start_with(other).await.unwrap();
    outside(cluster.at("db-0"), "db-1 lists the replicas db-1, db-0, and this replica lists db-0, db-1").await;
    outside(cluster.at("db-1"), "db-0 lists the replicas db-0, db-1, and this replica lists db-1, db-0").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_another_cluster_is_told_so() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    let mut other = cluster.options("db-1");
    other.cluster = "payments".into();
    cluster.start("db-0").await;
    cluster.start_with(other).await.unwrap();
    outside(cluster.at("db-0"), "db-1 belongs to cluster payments, db-0 to cluster orders").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lost_its_disk_follows_without_a_vote_and_disturbs_nobody() {
    let mut cluster = Cluster::formed().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    cluster.propose(&leader, "before").await;
    let (term, old_node) = (cluster.at(&leader).now().term, cluster.at(&lost).consensus.node_id());
    cluster.stop(&lost).await;
    std::fs::remove_dir_all(cluster.directory(&lost)).unwrap();

    cluster.start(&lost).await;
    outside(cluster.at(&lost), "has been unreachable for 60 s").await;
    cluster.at(&lost).until("it learns", |now| now.role == RaftRole::Learner && now.quorum).await;
    assert_ne!(cluster.at(&lost).consensus.node_id(), old_node);
    // The other replicas know the lost replica's name by its old vote; the lost replica knows this vote as foreign.
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let all = names(&["db-0", "db-1", "db-2"]);
    assert_eq!(cluster.at(&leader).consensus.members(), MemberNames { voters: all.clone(), learners: Vec::new() });
    let voters = all.into_iter().filter(|name| *name != lost).collect();
    assert_eq!(cluster.at(&lost).consensus.members(), MemberNames { voters, learners: names(&[&lost]) });
    assert!(cluster.at(&lost).consensus.is_left_behind());

    cluster.propose(&lost, "after").await;
    cluster.at(&lost).until_lines(2).await;
    assert_eq!((cluster.at(&leader).now().term, cluster.at(&leader).now().role), (term, RaftRole::Leader));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_is_never_given_by_a_replica_that_lost_its_disk() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.timing.election_timeout = (Duration::from_millis(800), Duration::from_millis(1600));
    cluster.start_all().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    let other = cluster.replicas.keys().find(|name| **name != leader && **name != lost).unwrap().clone();
    cluster.stop(&lost).await;
    std::fs::remove_dir_all(cluster.directory(&lost)).unwrap();
    cluster.start(&lost).await;
    cluster.at(&lost).until("it learns", |now| now.role == RaftRole::Learner && now.quorum).await;
    // With the leader gone only one true voter of three is left: no replica may win an election.
    cluster.stop(&leader).await;
    cluster.at(&other).until("the leader is missed", |now| now.leader.is_none()).await;
    let lease = cluster.timing.election_timeout.1;
    tokio::time::sleep(lease * 4).await;
    assert!(!cluster.at(&other).now().quorum);
    assert_ne!(cluster.at(&other).now().role, RaftRole::Leader);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_the_formed_cluster_does_not_know_stays_outside() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    let mut first = cluster.options("db-0");
    first.replicas.truncate(1);
    cluster.start_with(first).await.unwrap();
    cluster.at("db-0").until("it leads", |now| now.role == RaftRole::Leader).await;
    cluster.start("db-1").await;
    outside(cluster.at("db-1"), "the cluster is formed without db-1; run `allclear member add db-1 ").await;
    cluster.stop_all().await;
}
