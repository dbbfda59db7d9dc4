//! Voters with an empty disk after a restart: such replicas become voters again automatically.

use std::time::Duration;

use allclear::consensus::{Consensus, MemberNames, MemberStatus, RaftRole};

use crate::consensus::support::{Cluster, Ledger};

/// A cluster of three in which a lost disk is given up after a few seconds.
async fn formed() -> Cluster {
    formed_with(Duration::from_secs(4)).await
}

async fn formed_with(rejoin_after: Duration) -> Cluster {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.rejoin_after = rejoin_after;
    cluster.start_all().await;
    cluster.leader().await;
    cluster
}

async fn lose_disk(cluster: &mut Cluster, lost: &str) -> u64 {
    let node = cluster.at(lost).consensus.node_id();
    cluster.stop(lost).await;
    std::fs::remove_dir_all(cluster.directory(lost)).unwrap();
    node
}

fn votes(seats: &[MemberStatus], name: &str) -> usize {
    seats.iter().filter(|seat| seat.replica == name && seat.voter).count()
}

/// Waits until `lost` votes by its new node; there are three votes at any time, and never two votes of one name.
async fn until_it_votes(cluster: &Cluster, lost: &str, asked: &str) {
    let new = cluster.at(lost).consensus.node_id();
    let has_its_vote = async |cluster: &Cluster| {
        let seats = cluster.at(asked).consensus.roster().await;
        let (all, own) = (seats.iter().filter(|seat| seat.voter).count(), votes(&seats, lost));
        // Between the two steps of the one change both nodes count, for two sets of voters.
        let is_joint = all == 4 && own == 2;
        assert!(is_joint || (all == 3 && own == 1), "{seats:?}");
        seats.len() == 3 && seats.iter().any(|seat| seat.node == new && seat.voter)
    };
    cluster.until_true("its vote", has_its_vote).await;
    cluster.at(lost).until("it follows", |now| now.role == RaftRole::Follower && now.quorum).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_lost_its_disk_votes_again_by_itself_and_its_vote_counts() {
    let mut cluster = formed().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    cluster.propose(&leader, "before").await;
    let term = cluster.at(&leader).now().term;
    let old = lose_disk(&mut cluster, &lost).await;
    cluster.start(&lost).await;
    until_it_votes(&cluster, &lost, &leader).await;
    let seats = cluster.at(&leader).consensus.roster().await;
    assert!(seats.iter().all(|seat| seat.node != old && seat.unreachable.is_none()), "{seats:?}");
    assert_eq!((cluster.at(&leader).now().term, cluster.at(&leader).now().role), (term, RaftRole::Leader));
    // The lost replica learns of its vote a message later than the leader.
    cluster.until_true("it knows its vote", async |cluster| !cluster.at(&lost).consensus.is_left_behind()).await;
    // Without the leader, the lost replica is one of the two electors of the next leader.
    cluster.stop(&leader).await;
    let next = cluster.leader().await;
    cluster.propose(&next, "elected").await;
    cluster.at(&lost).until_lines(2).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_the_leader_whose_disk_is_lost() {
    let mut cluster = formed().await;
    let lost = cluster.leader().await;
    cluster.propose(&lost, "before").await;
    lose_disk(&mut cluster, &lost).await;
    let next = cluster.leader().await;
    cluster.start(&lost).await;
    until_it_votes(&cluster, &lost, &next).await;
    cluster.propose(&lost, "after").await;
    cluster.at(&lost).until_lines(2).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_off_is_not_waited_for() {
    let mut cluster = formed_with(Duration::from_mins(10)).await;
    let leader = cluster.leader().await;
    let lost = cluster.follower().await;
    cluster.at(&lost).consensus.sign_off().await;
    lose_disk(&mut cluster, &lost).await;
    cluster.start(&lost).await;
    until_it_votes(&cluster, &lost, &leader).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_ask_under_one_name_neither_is_let_in() {
    let mut cluster = formed().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    lose_disk(&mut cluster, &lost).await;
    // No replica calls the copy, but the copy calls the other replicas.
    let mut options = cluster.options(&lost);
    options.data_dir = cluster.root.path().join("copy");
    let (copy, _) = Consensus::open(options, Ledger::default()).await.unwrap();
    let is_known = |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("and takes over the vote"));
    let mut raft_status = copy.status();
    let waits =
        tokio::time::timeout(crate::consensus::support::LIMIT, raft_status.wait_for(|now| is_known(&now.role))).await;
    assert!(waits.is_ok_and(|waits| waits.is_ok()), "{:?}", copy.status().borrow());
    cluster.start(&lost).await;
    let refused =
        |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("more than one replica runs as"));
    cluster.at(&lost).until("it is refused", |now| refused(&now.role)).await;
    let waits =
        tokio::time::timeout(crate::consensus::support::LIMIT, raft_status.wait_for(|now| refused(&now.role))).await;
    assert!(waits.is_ok_and(|waits| waits.is_ok()), "{:?}", copy.status().borrow());
    // Longer than a single replica with this name would wait.
    let (began, rejoin_after) = (tokio::time::Instant::now(), cluster.rejoin_after);
    let lost_node = cluster.at(&lost).consensus.node_id();
    let neither = async |cluster: &Cluster| {
        let seats = cluster.at(&leader).consensus.roster().await;
        assert!(seats.iter().all(|seat| seat.node != lost_node && seat.node != copy.node_id()), "{seats:?}");
        began.elapsed() > rejoin_after * 2
    };
    cluster.until_true("twice the time", neither).await;
    assert!(copy.shutdown().await);
    until_it_votes(&cluster, &lost, &leader).await;
    let voters = cluster.addresses.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(cluster.at(&leader).consensus.members(), MemberNames { voters, learners: Vec::new() });
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_that_an_operator_removes_meanwhile_is_given_once() {
    let mut cluster = formed_with(Duration::from_mins(10)).await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    lose_disk(&mut cluster, &lost).await;
    let wish = cluster.at(&leader).consensus.on_behalf_of("a test");
    wish.remove_member(&lost).await.unwrap();
    cluster.start(&lost).await;
    // Nothing is left behind, so the lost replica learns and votes as any other configured replica.
    cluster.at(&lost).until("it follows", |now| now.role == RaftRole::Follower && now.quorum).await;
    let address = cluster.addresses.iter().find(|(name, _)| *name == lost).unwrap().1.clone();
    assert_eq!(wish.add_member(&lost, &address).await, Ok(true));
    let seats = cluster.at(&leader).consensus.roster().await;
    assert_eq!((seats.len(), votes(&seats, &lost)), (3, 1), "{seats:?}");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pair_it_waits_for_an_operator() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    cluster.rejoin_after = Duration::from_secs(3);
    cluster.start_all().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    lose_disk(&mut cluster, &lost).await;
    cluster.start(&lost).await;
    let told = |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("member restore` on its VM"));
    cluster.at(&lost).until("it is told what to do", |now| told(&now.role)).await;
    let began = tokio::time::Instant::now();
    let waits = async |cluster: &Cluster| {
        assert!(told(&cluster.at(&lost).now().role), "{:?}", cluster.at(&lost).now());
        began.elapsed() > cluster.rejoin_after * 2
    };
    cluster.until_true("twice the time", waits).await;
    assert!(!cluster.at(&leader).now().quorum);
    cluster.stop_all().await;
}
