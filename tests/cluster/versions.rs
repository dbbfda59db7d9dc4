//! Replicas of two versions in one cluster: from an older program to this one and back, replica by replica, with an event
//! open all the while. `ALLCLEAR_OLDER` names the older program; `tests/deploy/older COMMIT` builds one.

use std::path::{Path, PathBuf};

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::json;

use super::cluster::Cluster;
use super::evidence::measured_by;
use super::workload::hook;

fn older() -> PathBuf {
    let older = std::env::var_os("ALLCLEAR_OLDER").map(PathBuf::from);
    older.expect("ALLCLEAR_OLDER names no program: ALLCLEAR_OLDER=$(tests/deploy/older COMMIT)")
}

fn this() -> PathBuf {
    env!("CARGO_BIN_EXE_allclear").into()
}

/// One after the other, the next when the one before is well.
async fn all_run(cluster: &mut Cluster, program: &Path) {
    for place in 0..3 {
        let (_, status) = cluster.stop(place);
        assert!(status.success(), "replica {place} did not stop in order: {status}");
        cluster.replica_runs(place, program);
        cluster.start(place);
        cluster.ready().await;
    }
}

/// Returns the event that was open.
async fn goes_on(cluster: &mut Cluster, program: &Path, gate: &str) -> String {
    let before = cluster.hooks.begun().len();
    let posts = cluster.cloud.posts().await.len();
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 1 })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun().len() == before + 1).await;
    all_run(cluster, program).await;
    let waits = |event: &Event| event.stage == "preparing" && event.approvals.is_empty();
    cluster.until_event(0, &id, "still waiting for its hook", waits).await;
    cluster.hooks.open(gate);
    cluster.until_stage(2, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), posts + 1);
    assert_eq!(cluster.hooks.begun().len(), before + 2, "the drain and the restore, once each");
    id
}

async fn cluster_of(program: &Path) -> Cluster {
    let hooks = vec![hook("drain").waits_for("gate"), hook("restore")];
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).cold().await;
    for place in 0..3 {
        cluster.replica_runs(place, program);
    }
    cluster.start_all();
    cluster.ready().await;
    cluster
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another version: ALLCLEAR_OLDER"]
async fn replicas_are_upgraded_one_by_one_without_losing_an_open_event() {
    let mut cluster = cluster_of(&older()).await;
    goes_on(&mut cluster, &this(), "gate").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another version that knows every kind of entry of this one: ALLCLEAR_OLDER"]
async fn replicas_are_taken_back_and_upgraded_again_without_losing_an_open_event() {
    let mut cluster = cluster_of(&this()).await;
    goes_on(&mut cluster, &older(), "gate").await;
    cluster.hooks.shut("gate");
    goes_on(&mut cluster, &this(), "gate").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another version that does not know every kind of entry of this one: ALLCLEAR_OLDER"]
async fn an_older_replica_skips_nothing_that_it_cannot_read_and_goes_on_when_it_is_upgraded() {
    let mut cluster = cluster_of(&older()).await;
    let id = goes_on(&mut cluster, &this(), "gate").await;
    // an entry of a kind that older versions did not have
    measured_by(&cluster, 2, &id).await;
    cluster.stop(0);
    cluster.replica_runs(0, &older());
    cluster.start(0);
    let says_why = async || cluster.log(0).contains("it was written by a newer version of allclear");
    cluster.until_true("it says why it cannot go on", says_why).await;
    assert_eq!(cluster.waits_for_the_end(0).code(), Some(1));
    cluster.replica_runs(0, &this());
    cluster.start(0);
    cluster.ready().await;
    cluster.hooks.shut("gate");
    goes_on(&mut cluster, &this(), "gate").await;
}
