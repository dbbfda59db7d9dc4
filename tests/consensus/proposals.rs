//! Proposals and linearizable reads.

use allclear::consensus::{MAX_PROPOSAL_BYTES, RaftRole, RequestError};

use crate::consensus::support::{Cluster, LIMIT};
use crate::consensus::wire::Wire;

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_of_a_follower_is_stamped_with_its_name_and_applied_everywhere() {
    let mut cluster = Cluster::formed().await;
    let follower = cluster.follower().await;
    let verdict = cluster.propose(&follower, "first").await;
    assert!(verdict.starts_with("line 1 at "), "{verdict}");
    for replica in cluster.replicas.values() {
        replica.consensus.ensure_linearizable().await.unwrap();
        assert_eq!(replica.lines(), [format!("first by {follower}")]);
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_reading_on_a_follower_sees_every_write_before_it() {
    let mut cluster = Cluster::formed().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    for count in 1..=40 {
        cluster.propose(&leader, "more").await;
        cluster.at(&follower).consensus.ensure_linearizable().await.unwrap();
        assert_eq!(cluster.at(&follower).lines().len(), count);
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_leader_cannot_take_is_refused_with_its_reason_on_any_replica() {
    let mut cluster = Cluster::formed().await;
    for replica in cluster.replicas.values() {
        let refused = replica.consensus.propose("unstamped").await;
        assert_eq!(refused, Err(RequestError::Refused("the leader cannot decode the proposal: not a line".into())));
        let size = MAX_PROPOSAL_BYTES + 1;
        let refused = replica.consensus.propose(vec![b'x'; size]).await;
        assert_eq!(
            refused,
            Err(RequestError::Refused(format!("the proposal has {size} bytes; the limit is {MAX_PROPOSAL_BYTES}")))
        );
        replica.consensus.propose(vec![b'x'; MAX_PROPOSAL_BYTES]).await.unwrap();
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_learn_of_a_commit_without_waiting_for_a_heartbeat() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    // Far beyond every wait of this test.
    cluster.timing.heartbeat = LIMIT * 4;
    cluster.timing.election_timeout = (LIMIT * 10, LIMIT * 20);
    cluster.start_all().await;
    cluster.at("db-0").until("it leads", |now| now.role == RaftRole::Leader && now.quorum).await;
    for count in 0..10 {
        cluster.propose("db-0", &count.to_string()).await;
        for replica in cluster.replicas.values() {
            replica.until_lines(count + 1).await;
        }
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_leader_a_verdict_is_given_only_after_its_state_is_shown() {
    let mut cluster = Cluster::formed().await;
    let leader = cluster.leader().await;
    for count in 1..=50 {
        cluster.propose(&leader, "shown").await;
        assert_eq!(cluster.at(&leader).lines().len(), count);
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leaders_reply_is_lost_the_outcome_is_unknown_and_nothing_is_repeated() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    let wire = Wire::to(cluster.addresses[0].1.clone()).await;
    let mut follower = cluster.options("db-1");
    follower.replicas[0].1 = wire.address.clone();
    cluster.start("db-0").await;
    cluster.start_with(follower).await.unwrap();
    cluster.start("db-2").await;
    let leader = cluster.leader().await;
    if leader != "db-0" {
        cluster.at(&leader).consensus.transfer_leadership("db-0").await.unwrap();
        assert_eq!(cluster.leader().await, "db-0");
    }
    cluster.propose("db-1", "over the wire").await;

    wire.hold_replies();
    let follower = cluster.at("db-1").consensus.clone();
    let asking = tokio::spawn(async move { follower.propose("once").await });
    cluster.at("db-0").until_lines(2).await;
    wire.cut();
    let outcome = asking.await.unwrap();
    assert!(matches!(outcome, Err(RequestError::Unknown(_))), "{outcome:?}");

    cluster.at("db-1").consensus.ensure_linearizable().await.unwrap();
    assert_eq!(cluster.at("db-1").lines(), ["over the wire by db-1", "once by db-1"]);
    cluster.stop_all().await;
}
