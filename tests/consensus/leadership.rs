//! Leadership: which replica leads, and which actions need more than the leader.

use std::time::Duration;

use allclear::consensus::{RaftRole, RequestError};

use crate::consensus::support::Cluster;
use crate::consensus::wire::Wire;

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_goes_another_one_leads_and_writes_go_on() {
    let mut cluster = Cluster::formed().await;
    let leader = cluster.leader().await;
    let term = cluster.at(&leader).now().term;
    cluster.propose(&leader, "before").await;
    cluster.stop(&leader).await;
    let next = cluster.leader().await;
    assert!(cluster.at(&next).now().term > term);
    cluster.propose(&next, "after").await;
    cluster.start(&leader).await;
    cluster.at(&leader).consensus.ensure_linearizable().await.unwrap();
    assert_eq!(cluster.at(&leader).lines(), [format!("before by {leader}"), format!("after by {next}")]);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_handed_to_the_voter_that_was_named() {
    let mut cluster = Cluster::formed().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let handed = cluster.at(&follower).consensus.transfer_leadership(&follower).await;
    assert_eq!(handed, Err(RequestError::NoLeader));
    let handed = cluster.at(&leader).consensus.transfer_leadership("db-9").await;
    assert_eq!(handed, Err(RequestError::Refused("db-9 is not a voter of this cluster".into())));
    cluster.at(&leader).consensus.transfer_leadership(&follower).await.unwrap();
    assert_eq!(cluster.leader().await, follower);
    cluster.propose(&leader, "handed over").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_not_handed_to_a_voter_that_does_not_answer() {
    let mut cluster = Cluster::formed().await;
    let (leader, gone) = (cluster.leader().await, cluster.follower().await);
    cluster.stop(&gone).await;
    cluster.propose(&leader, "it misses this one").await;
    let handed = cluster.at(&leader).consensus.transfer_leadership(&gone).await;
    assert_eq!(handed, Err(RequestError::Refused(format!("{gone} is not up to date, or does not answer"))));
    cluster.propose(&leader, "still led").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_while_leadership_moves_are_applied_once() {
    let mut cluster = Cluster::formed().await;
    let proposer = cluster.at("db-0").consensus.clone();
    let proposing = tokio::spawn(async move {
        let mut taken = Vec::new();
        for count in 0..300 {
            match proposer.propose(format!("line-{count}")).await {
                Ok(_) => taken.push(format!("line-{count} by db-0")),
                Err(RequestError::Unknown(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        taken
    });
    for turn in 0..12 {
        let leader = cluster.leader().await;
        let successor = format!("db-{}", turn % 3);
        // A follower may lag for a moment; then no leadership moves in this iteration.
        let _ = cluster.at(&leader).consensus.transfer_leadership(&successor).await;
    }
    let taken = proposing.await.unwrap();
    cluster.at("db-0").consensus.ensure_linearizable().await.unwrap();
    let mut lines = cluster.at("db-0").lines();
    assert!(taken.iter().all(|line| lines.contains(line)), "an acknowledged line is missing");
    let applied = lines.len();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), applied, "a line was applied twice");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_lost_its_followers_confirms_nothing_and_shows_no_quorum() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.timing.deadline = Duration::from_secs(2);
    cluster.start_all().await;
    let leader = cluster.leader().await;
    cluster.propose(&leader, "together").await;
    for (name, _) in cluster.addresses.clone() {
        if name != leader {
            cluster.stop(&name).await;
        }
    }
    let alone = cluster.at(&leader);
    let confirmed = alone.consensus.ensure_linearizable().await;
    assert!(matches!(confirmed, Err(RequestError::Refused(_) | RequestError::NoLeader)), "{confirmed:?}");
    alone.until("the quorum is missed", |now| !now.quorum).await;
    let proposed = alone.consensus.propose("alone").await;
    assert!(matches!(proposed, Err(RequestError::NoLeader | RequestError::Unknown(_))), "{proposed:?}");
    assert_eq!(alone.lines(), [format!("together by {leader}")]);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_hears_no_leader_shows_none() {
    let mut cluster = Cluster::formed().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    for (name, _) in cluster.addresses.clone() {
        if name != follower {
            cluster.stop(&name).await;
        }
    }
    let alone = cluster.at(&follower);
    let now = alone.until("no leader is shown", |now| now.leader.is_none() && !now.quorum).await;
    assert_ne!(now.role, RaftRole::Leader);
    cluster.start(&leader).await;
    cluster.leader().await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_cut_off_while_another_leads_confirms_nothing_until_it_has_caught_up() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.timing.deadline = Duration::from_secs(4);
    let mut wires = Vec::new();
    for (from, to) in [(0, 1), (0, 2), (1, 0), (2, 0)] {
        wires.push((from, to, Wire::to(cluster.addresses[to].1.clone()).await));
    }
    for index in 0..3 {
        let mut options = cluster.options(&format!("db-{index}"));
        for (_, to, wire) in wires.iter().filter(|(from, ..)| *from == index) {
            options.replicas[*to].1 = wire.address.clone();
        }
        cluster.start_with(options).await.unwrap();
    }
    let first = cluster.leader().await;
    if first != "db-0" {
        cluster.at(&first).consensus.transfer_leadership("db-0").await.unwrap();
    }
    assert_eq!(cluster.leader().await, "db-0");
    cluster.propose("db-0", "together").await;

    for (.., wire) in &wires {
        wire.block();
    }
    let next =
        cluster.at("db-1").until("another leads", |now| now.quorum && now.leader.as_deref() != Some("db-0")).await;
    assert!(next.term > cluster.at("db-0").now().term);
    cluster.propose("db-1", "without it").await;
    let confirmed = cluster.at("db-0").consensus.ensure_linearizable().await;
    assert!(matches!(confirmed, Err(RequestError::Refused(_) | RequestError::NoLeader)), "{confirmed:?}");
    assert_eq!(cluster.at("db-0").lines(), ["together by db-0"]);

    for (.., wire) in &wires {
        wire.mend();
    }
    cluster.leader().await;
    cluster.at("db-0").consensus.ensure_linearizable().await.unwrap();
    assert_eq!(cluster.at("db-0").lines(), ["together by db-0", "without it by db-1"]);
    cluster.stop_all().await;
}
