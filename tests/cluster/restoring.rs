//! A cluster that is restored from the last remaining disk.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::workload::hook;

const FLAG: &str = "--from-this-disk-alone-and-accept-lost-entries";

/// Three replicas in the middle of an event of the third VM; all replicas are killed then.
async fn in_the_middle() -> (Cluster, String) {
    let mut cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 2 })).await;
    cluster.seen_by_all(&id).await;
    let begun = |event: &Event| event.hooks.len() == 2;
    cluster.until_event(2, &id, "half prepared", begun).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    for place in 0..3 {
        cluster.kill(place);
    }
    (cluster, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_restored_from_one_disk_goes_on_with_its_event_and_approves_it_once() {
    let (mut cluster, id) = in_the_middle().await;
    for lost in [0, 1] {
        cluster.lose_disk(lost);
    }
    let (code, said) = cluster.restore(2, &[]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("Nothing was changed") && said.contains("Voters: db-0, db-1, db-2"), "{said}");
    let (code, said) = cluster.restore(2, &[FLAG]);
    assert_eq!(code, 0, "{said}");

    cluster.start(2);
    let leads = |status: &Status| status.quorum && status.role == "leader";
    cluster.until(2, "leading alone", leads).await;
    assert_eq!(cluster.restore(2, &[FLAG]).0, 4, "a running replica was restored");
    for fresh in [0, 1] {
        cluster.start(fresh);
    }
    cluster.ready().await;
    let complete = |status: &Status| status.replicas.iter().filter(|replica| replica.voter).count() == 3;
    cluster.until(2, "complete again", complete).await;
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.outcome.as_deref(), Some("completed"));
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_disk_is_not_let_into_a_restored_cluster() {
    let (mut cluster, _) = in_the_middle().await;
    assert_eq!(cluster.restore(2, &[FLAG]).0, 0);
    cluster.start(2);
    let leads = |status: &Status| status.quorum && status.role == "leader";
    cluster.until(2, "leading alone", leads).await;
    // One of three is no quorum of the former cluster.
    cluster.start(0);
    let told = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("was restored"));
    let advice = cluster.until(0, "told what to do", told).await.outside_because.unwrap();
    assert!(advice.contains("empty its data_dir"), "{advice}");
    let (code, out, _) = cluster.says(2, &["member", "list"]);
    assert_eq!(code, 0);
    let row = out.lines().find(|line| line.starts_with("db-0")).unwrap();
    assert!(row.contains("older than the restore of the cluster") && row.contains("learner"), "{out}");
    let address = row.split_whitespace().nth(1).unwrap();
    let (code, _, why) = cluster.says(2, &["member", "add", "db-0", address]);
    assert!(code == 4 && why.contains("older than the restore of this cluster"), "{code}: {why}");
    cluster.kill(0);
    cluster.lose_disk(0);
    cluster.start(0);
    let back = |status: &Status| status.replicas.iter().any(|replica| replica.name == "db-0" && replica.voter);
    cluster.until(2, "joined by a new disk", back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_restored_from_an_empty_disk() {
    let mut cluster = Cluster::of(&["db-0"]).start().await;
    cluster.kill(0);
    cluster.lose_disk(0);
    let (code, said) = cluster.restore(0, &[FLAG]);
    assert!(code == 4 && said.contains("nothing to restore"), "{code}: {said}");
}
