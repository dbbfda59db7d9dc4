//! Members at changed addresses.

use allclear::consensus::{RaftRole, RequestError};

use crate::consensus::support::{Cluster, free_address};

fn address_in_the_log(seats: &[allclear::consensus::MemberStatus], name: &str) -> String {
    seats.iter().find(|seat| seat.replica == name).unwrap().address.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_follows_a_new_address_once_all_configurations_have_it() {
    let mut cluster = Cluster::formed().await;
    let moved = cluster.follower().await;
    cluster.propose(&moved, "before").await;
    let new = free_address();
    cluster.addresses.iter_mut().find(|(name, _)| *name == moved).unwrap().1.clone_from(&new);
    // The moved replica goes first: until the other replicas know the new address, the moved replica is unreachable.
    let others: Vec<String> = cluster.replicas.keys().filter(|name| **name != moved).cloned().collect();
    for name in [&moved].into_iter().chain(&others) {
        cluster.stop(name).await;
        cluster.start(name).await;
        cluster.at(name).until("it takes part", |now| now.quorum || *name == moved).await;
    }
    let leader = cluster.leader().await;
    cluster
        .until_true("the log follows", async |cluster: &Cluster| {
            address_in_the_log(&cluster.at(&leader).consensus.roster().await, &moved) == new
        })
        .await;
    cluster.propose(&moved, "after").await;
    assert_eq!(cluster.at(&leader).consensus.members().voters.len(), 3);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_no_configuration_names_is_moved_by_adding_it_again() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2", "db-3"]);
    let configured = cluster.addresses[..3].to_vec();
    for name in ["db-0", "db-1", "db-2"] {
        let mut options = cluster.options(name);
        options.replicas.clone_from(&configured);
        cluster.start_with(options).await.unwrap();
    }
    let leader = cluster.leader().await;
    let consensus = cluster.at(&leader).consensus.clone();
    cluster.start("db-3").await;
    consensus.add_member("db-3", &cluster.addresses[3].1.clone()).await.unwrap();
    cluster.stop("db-3").await;
    let new = free_address();
    let silent = consensus.add_member("db-3", &new).await;
    assert!(matches!(&silent, Err(RequestError::Refused(why)) if why.ends_with("start db-3 first")), "{silent:?}");
    cluster.addresses[3].1.clone_from(&new);
    cluster.start("db-3").await;
    consensus.add_member("db-3", &new).await.unwrap();
    cluster.propose(&leader, "found").await;
    cluster.at("db-3").until_lines(1).await;
    cluster.at("db-3").until("it follows", |now| now.role == RaftRole::Follower && now.quorum).await;
    assert_eq!(address_in_the_log(&consensus.roster().await, "db-3"), new);

    // A command does not move a member to another address than the configuration's.
    let refused = consensus.add_member("db-1", &new).await;
    assert!(
        matches!(&refused, Err(RequestError::Refused(why)) if why.contains("change cluster.replicas")),
        "{refused:?}"
    );
    cluster.stop_all().await;
}
