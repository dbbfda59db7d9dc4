//! How long things take here: printed for people, never asserted. Run with `--ignored --nocapture`.

use std::time::{Duration, Instant};

use crate::support::{Cluster, LIMIT};

fn report(what: &str, mut spans: Vec<Duration>) {
    spans.sort();
    let at = |percent: usize| spans[(spans.len() - 1) * percent / 100];
    println!("{what}: median {:?}, p99 {:?}, worst {:?}", at(50), at(99), at(100));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints measurements"]
async fn measure_commit_propagation_and_confirmation() {
    let mut cluster = Cluster::formed().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let (mut commits, mut lags, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for count in 1..=500 {
        let started = Instant::now();
        cluster.propose(&leader, &format!("{count}")).await;
        commits.push(started.elapsed());
        let committed = Instant::now();
        while cluster.at(&follower).lines().len() < count {
            assert!(committed.elapsed() < LIMIT, "it never came");
            tokio::task::yield_now().await;
        }
        lags.push(committed.elapsed());
        let started = Instant::now();
        cluster.at(&follower).consensus.confirm().await.unwrap();
        reads.push(started.elapsed());
    }
    report("commit at the leader", commits);
    report("applied at a follower after the leader's verdict", lags);
    report("confirmed on a follower", reads);
    cluster.stop_all().await;
}
