//! Contact of a replica with its peers, recorded exactly enough to decide which actions the replica may do in
//! isolation.

use std::time::{Duration, Instant};

use allclear::consensus::RaftStatus;

use crate::consensus::support::{Cluster, LIMIT};
use crate::consensus::wire::Wire;

/// Two replicas, led by db-0, and the two wires to block: the wire to db-1, and the wire from db-1.
async fn pair() -> (Cluster, Wire, Wire) {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    let (there, back) =
        (Wire::to(cluster.addresses[1].1.clone()).await, Wire::to(cluster.addresses[0].1.clone()).await);
    let (mut first, mut second) = (cluster.options("db-0"), cluster.options("db-1"));
    first.replicas[1].1.clone_from(&there.address);
    second.replicas[0].1.clone_from(&back.address);
    cluster.start_with(first).await.unwrap();
    cluster.start_with(second).await.unwrap();
    let leader = cluster.leader().await;
    if leader != "db-0" {
        cluster.at(&leader).consensus.transfer_leadership("db-0").await.unwrap();
    }
    assert_eq!(cluster.leader().await, "db-0");
    (cluster, there, back)
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < LIMIT, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quorum_that_was_lost_and_found_within_a_term_begins_another_turn() {
    let (mut cluster, there, _back) = pair().await;
    let leader = cluster.at("db-0");
    let before = leader.until("it leads", RaftStatus::leads).await;
    assert!(before.turn >= 1, "{before:?}");
    assert_eq!(cluster.at("db-1").now().turn, 0, "of a follower");

    // The follower still receives messages of its leader, so the follower does not campaign.
    there.hold_replies();
    let lost = leader.until("the quorum is lost", |now| !now.quorum).await;
    assert_eq!((lost.term, lost.turn), (before.term, before.turn));
    there.mend();
    let found = leader.until("the quorum is back", RaftStatus::leads).await;
    assert!((found.term, found.turn) > (before.term, before.turn), "{found:?} after {before:?}");
    let now = leader.consensus.status_now();
    assert!((now.term, now.turn) >= (found.term, found.turn), "{now:?}");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_term_begins_with_its_first_turn() {
    let mut cluster = Cluster::formed().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let term = cluster.at(&leader).now().term;
    cluster.at(&leader).consensus.transfer_leadership(&follower).await.unwrap();
    let next = cluster.at(&follower).until("it leads", RaftStatus::leads).await;
    assert!(next.term > term);
    assert_eq!(next.turn, 1);
    assert_eq!(cluster.at(&leader).until("it follows", |now| !now.leads()).await.turn, 0);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_has_heard_the_leader_no_earlier_than_what_the_leader_counts_as_acknowledged() {
    let (mut cluster, there, _back) = pair().await;
    let (leader, voter) = (&cluster.at("db-0").consensus, &cluster.at("db-1").consensus);
    assert!(voter.acknowledged().is_empty(), "a follower knows nothing of voters");
    let mut last = None;
    for turn in 0..50 {
        cluster.propose("db-0", &format!("line {turn}")).await;
        let acknowledged = leader.acknowledged();
        assert_eq!(acknowledged.keys().collect::<Vec<_>>(), ["db-1"]);
        let sent = acknowledged["db-1"];
        assert!(Some(sent) <= voter.last_contact(), "the voter heard it before it was sent");
        assert!(Some(sent) >= last, "it went back");
        last = Some(sent);
    }

    // A request without a reply is not counted, though the request reaches the voter, however late the reply is.
    there.hold_replies();
    cluster.at("db-0").until("the quorum is lost", |now| !now.quorum).await;
    let sent = leader.acknowledged()["db-1"];
    assert!(voter.last_contact() > Some(sent), "it has heard the leader since");
    let again = leader.acknowledged()["db-1"];
    assert_eq!(sent, again);
    assert!(leader.last_contact() <= Some(sent.max(again)), "a quorum is the voter and the leader");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_is_gone_is_acknowledged_no_more_while_the_others_are() {
    let mut cluster = Cluster::formed().await;
    let (leader, gone) = (cluster.leader().await, cluster.follower().await);
    let other = cluster.replicas.keys().find(|name| **name != leader && **name != gone).unwrap().clone();
    until("both acknowledged", async || cluster.at(&leader).consensus.acknowledged().len() == 2).await;
    cluster.stop(&gone).await;
    let stopped = Instant::now();
    let consensus = &cluster.at(&leader).consensus;
    until("the other goes on", async || consensus.acknowledged()[&other] > stopped).await;
    assert!(consensus.acknowledged()[&gone] < stopped);
    assert!(consensus.last_contact() > Some(stopped));

    // In its own term, the next leader has received nothing from the stopped replica.
    consensus.transfer_leadership(&other).await.unwrap();
    until("the next leader is acknowledged", async || cluster.at(&other).consensus.acknowledged().keys().eq([&leader]))
        .await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_contact_is_the_leaders_word_for_everybody_else_and_the_quorums_for_the_leader() {
    let (mut cluster, there, back) = pair().await;
    there.block();
    back.block();
    let blocked = Instant::now();
    for name in ["db-0", "db-1"] {
        cluster.at(name).until("it is alone", |now| !now.quorum).await;
    }
    let (leader, voter) = (&cluster.at("db-0").consensus, &cluster.at("db-1").consensus);
    // Messages in flight when the wires were blocked may still arrive, later messages do not.
    let before = (leader.last_contact(), voter.last_contact());
    assert!(before.0 < Some(blocked) && before.0.is_some() && before.1.is_some(), "{before:?} {blocked:?}");
    there.mend();
    back.mend();
    cluster.leader().await;
    until("contact again", async || leader.last_contact() > before.0 && voter.last_contact() > before.1).await;
    cluster.stop_all().await;

    let mut alone = Cluster::planned(&["db-0"]);
    alone.start_all().await;
    alone.leader().await;
    let asked = Instant::now();
    assert!(alone.at("db-0").consensus.last_contact() >= Some(asked), "the only voter is its own quorum");
    assert!(alone.at("db-0").consensus.acknowledged().is_empty());
    alone.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_replica_cannot_know_to_be_committed_is_its_tail() {
    let (mut cluster, there, _back) = pair().await;
    cluster.propose("db-0", "committed").await;
    cluster.at("db-1").until_lines(1).await;
    for name in ["db-0", "db-1"] {
        assert!(cluster.at(name).consensus.unapplied_entries().await.unwrap().is_empty(), "{name}");
    }

    // The entry reaches the other replica's log, but the leader never receives the acknowledgement.
    there.hold_replies();
    let proposer = cluster.at("db-0").consensus.clone();
    let proposing = tokio::spawn(async move { proposer.propose("perhaps").await });
    for name in ["db-0", "db-1"] {
        let consensus = &cluster.at(name).consensus;
        until("it is in the log", async || consensus.unapplied_entries().await.unwrap() == ["perhaps by db-0"]).await;
        assert_eq!(cluster.at(name).lines(), ["committed by db-0"], "{name} applied it");
    }
    there.mend();
    cluster.at("db-1").until_lines(2).await;
    until("nothing is left", async || cluster.at("db-1").consensus.unapplied_entries().await.unwrap().is_empty()).await;
    let _ = proposing.await.unwrap();
    let consensus = cluster.at("db-1").consensus.clone();
    cluster.stop_all().await;
    assert!(consensus.unapplied_entries().await.is_err(), "the log of a replica that was shut down");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_replica_that_is_alone_finds_in_its_tail_what_it_did_not_apply() {
    let mut cluster = Cluster::formed().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    for count in 0..5 {
        cluster.propose(&leader, &count.to_string()).await;
    }
    cluster.at(&follower).until_lines(5).await;
    cluster.stop_all().await;
    cluster.start(&follower).await;
    let alone = cluster.at(&follower);
    let tail = alone.consensus.unapplied_entries().await.unwrap();
    let applied = alone.lines();
    let told = |line: &String| applied.contains(line) || tail.iter().any(|entry| entry == line.as_bytes());
    for line in (0..5).map(|count| format!("{count} by {leader}")) {
        assert!(told(&line), "{line} is neither in {applied:?} nor in {tail:?}");
    }
    assert_eq!(alone.consensus.last_contact(), None);
    cluster.stop_all().await;
}
