//! Leadership transfers as seen by a client with continuous writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use allclear::consensus::{Consensus, RaftRole, RaftTiming};

use crate::consensus::support::{Cluster, LIMIT};

/// Writes one line after the other until `stop` is set, and returns the time of each acknowledgement.
async fn write(client: Consensus, stop: Arc<AtomicBool>) -> Vec<Instant> {
    let mut acknowledged = vec![Instant::now()];
    while !stop.load(Ordering::Relaxed) {
        client.propose(format!("line-{}", acknowledged.len())).await.expect("no write fails");
        acknowledged.push(Instant::now());
    }
    acknowledged
}

fn longest(acknowledged: &[Instant]) -> Duration {
    acknowledged.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_writes_all_the_time_loses_nothing_while_leadership_is_handed_over() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.timing = RaftTiming { deadline: cluster.timing.deadline, ..RaftTiming::default() };
    cluster.start_all().await;
    let client = cluster.follower().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(write(cluster.at(&client).consensus.clone(), stop.clone()));
    let mut handed = 0;
    for _ in 0..20 {
        let leader = cluster.leader().await;
        let heir = cluster.replicas.keys().find(|name| **name != leader && **name != client).cloned();
        // The client's own replica may have been elected in between; then leadership moves to any other replica.
        let heir = heir.unwrap_or_else(|| "db-0".into());
        // The target may lag for a moment; then no leadership moves in this iteration.
        handed += usize::from(cluster.at(&leader).consensus.transfer_leadership(&heir).await.is_ok());
    }
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writing.await.unwrap();
    println!("{handed} times handed over; the longest pause between two writes: {:?}", longest(&acknowledged));
    assert!(handed > 0, "leadership never moved");
    cluster.at(&client).consensus.ensure_linearizable().await.unwrap();
    let written: Vec<_> = (1..acknowledged.len()).map(|count| format!("line-{count} by {client}")).collect();
    assert_eq!(cluster.at(&client).lines(), written);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_handed_over_without_waiting_for_a_heartbeat() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    // Far beyond every wait of this test.
    cluster.timing.heartbeat = LIMIT * 4;
    cluster.timing.election_timeout = (LIMIT * 10, LIMIT * 20);
    cluster.start_all().await;
    cluster.at("db-0").until("it leads", |now| now.role == RaftRole::Leader && now.quorum).await;
    cluster.at("db-0").consensus.transfer_leadership("db-1").await.unwrap();
    cluster.at("db-1").until("it leads", |now| now.role == RaftRole::Leader).await;
    cluster.stop_all().await;
}
