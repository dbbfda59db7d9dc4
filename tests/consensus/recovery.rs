//! State after restarts, and how a replica catches up after an absence.

use allclear::consensus::MAX_PROPOSAL_BYTES;

use crate::consensus::support::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_of_all_everything_acknowledged_is_there() {
    let mut cluster = Cluster::formed().await;
    let mut expected = Vec::new();
    let mut term = 0;
    for round in 0..3 {
        for count in 0..20 {
            let at = format!("db-{}", count % 3);
            cluster.propose(&at, &format!("{round}-{count}")).await;
            expected.push(format!("{round}-{count} by {at}"));
        }
        cluster.stop_all().await;
        cluster.start_all().await;
        let leader = cluster.leader().await;
        let now = cluster.at(&leader).now();
        assert!(now.term > term, "a restart shows as a new term");
        term = now.term;
        for replica in cluster.replicas.values() {
            replica.consensus.ensure_linearizable().await.unwrap();
            assert_eq!(replica.lines(), expected);
        }
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_away_catches_up_by_a_snapshot_when_the_log_is_gone() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.snapshot_every = 10;
    cluster.start_all().await;
    let (leader, away) = (cluster.leader().await, cluster.follower().await);
    cluster.stop(&away).await;
    // Together more than one chunk of a snapshot in transfer.
    let long = "x".repeat(100_000);
    for count in 0..45 {
        cluster.propose(&leader, &format!("{count} {long}")).await;
    }
    cluster.start(&away).await;
    cluster.at(&away).until_lines(45).await;
    assert!(cluster.at(&away).restored() > 0, "it caught up without a snapshot");
    assert_eq!(cluster.at(&away).lines(), cluster.at(&leader).lines());
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_missed_more_than_one_message_holds_catches_up_from_the_log() {
    let mut cluster = Cluster::formed().await;
    let (leader, away) = (cluster.leader().await, cluster.follower().await);
    cluster.stop(&away).await;
    let long = "x".repeat(MAX_PROPOSAL_BYTES);
    for _ in 0..8 {
        cluster.propose(&leader, &long).await;
    }
    cluster.start(&away).await;
    cluster.at(&away).until_lines(8).await;
    assert_eq!((cluster.at(&away).lines().len(), cluster.at(&away).restored()), (8, 0));
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_replica_starts_from_its_own_snapshot_and_the_log_after_it() {
    let mut cluster = Cluster::planned(&["db-0"]);
    cluster.snapshot_every = 10;
    cluster.start_all().await;
    cluster.leader().await;
    for count in 0..25 {
        cluster.propose("db-0", &count.to_string()).await;
    }
    cluster.stop_all().await;
    cluster.start_all().await;
    cluster.at("db-0").consensus.ensure_linearizable().await.unwrap();
    assert!(cluster.at("db-0").restored() > 0, "the snapshot was not used");
    assert_eq!(cluster.at("db-0").lines().len(), 25);
    cluster.stop_all().await;
}
