//! Members come and go; a lost disk comes back as somebody new.

use allclear::consensus::{MembershipError, Role};

use crate::support::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lost_its_disk_returns_once_it_is_removed_and_added() {
    let mut cluster = Cluster::formed().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    cluster.propose(&leader, "before").await;
    cluster.stop(&lost).await;
    std::fs::remove_dir_all(cluster.directory(&lost)).unwrap();
    cluster.start(&lost).await;
    let told = |role: &Role| matches!(role, Role::Outside(reason) if reason.contains("member remove"));
    cluster.at(&lost).until("it is told what to do", |now| told(&now.role)).await;

    let consensus = cluster.at(&leader).consensus.clone();
    let address = cluster.options(&lost).replicas.iter().find(|(name, _)| *name == lost).unwrap().1.clone();
    let added = consensus.add_member(&lost, &address).await;
    assert_eq!(added, Err(MembershipError::OldNode(lost.clone())));
    consensus.remove_member(&lost).await.unwrap();
    assert_eq!(consensus.members().voters.len(), 2);
    consensus.add_member(&lost, &address).await.unwrap();
    consensus.add_member(&lost, &address).await.unwrap();
    assert_eq!(consensus.members().voters, ["db-0", "db-1", "db-2"]);

    cluster.propose(&lost, "after").await;
    cluster.at(&lost).consensus.confirm().await.unwrap();
    assert_eq!(cluster.at(&lost).lines(), [format!("before by {leader}"), format!("after by {lost}")]);
    // Its new vote counts: without the leader it is one of the two that elect the next.
    cluster.stop(&leader).await;
    let next = cluster.leader().await;
    cluster.propose(&next, "elected").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_grows_to_two_and_shrinks_again() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]).await;
    let mut first = cluster.options("db-0");
    first.replicas.truncate(1);
    cluster.start_with(first).await.unwrap();
    cluster.at("db-0").until("it leads", |now| now.role == Role::Leader && now.quorum).await;
    cluster.propose("db-0", "alone").await;
    let (consensus, address) = (cluster.at("db-0").consensus.clone(), cluster.addresses[1].1.clone());
    let silent = consensus.add_member("db-1", &address).await;
    assert!(matches!(silent, Err(MembershipError::Silent { .. })), "{silent:?}");
    assert_eq!(consensus.remove_member("db-0").await, Err(MembershipError::LastVoter("db-0".into())));
    assert_eq!(consensus.remove_member("db-1").await, Err(MembershipError::NoMember("db-1".into())));

    cluster.start("db-1").await;
    consensus.add_member("db-1", &address).await.unwrap();
    cluster.propose("db-1", "together").await;
    let refused = cluster.at("db-1").consensus.remove_member("db-1").await;
    assert_eq!(refused, Err(MembershipError::NotLeader(Some("db-0".into()))));
    consensus.remove_member("db-1").await.unwrap();
    cluster.stop("db-1").await;
    cluster.propose("db-0", "alone again").await;
    assert_eq!(cluster.at("db-0").lines(), ["alone by db-0", "together by db-1", "alone again by db-0"]);
    cluster.stop_all().await;
}
