//! Machines that come back with an empty disk while an event is open that they had begun to prepare.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::membership::done;
use super::workload::{Hook, hook};

/// Runs until the gate is open, and says when it is asked that it is done.
fn drain() -> Hook {
    hook("drain").with("timeout = \"300s\"").can_confirm().waits_for("gate")
}

/// A cluster whose event is being prepared, the affected replica, another one, and the event's id.
async fn in_the_middle_of_a_hook() -> (Cluster, usize, usize, String) {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![drain(), hook("restore")]);
    let cluster = plan.also("cluster.election_timeout", "2s").start().await;
    let leader = cluster.leader(0).await;
    let affected = (leader + 1) % 3;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": affected })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    (cluster, affected, leader, id)
}

/// What was begun and forgotten was asked about and not run again, and the event went on.
async fn ends_well(cluster: &Cluster, other: usize, id: &str) {
    cluster.until_stage(other, id, "started").await;
    cluster.cloud.finish(id).await;
    let event: Event = cluster.closed_everywhere(id).await;
    assert_eq!(cluster.hooks.asked(), ["run drain", "confirm drain", "run restore"], "{event:#?}");
    let first = &event.hooks[0];
    assert_eq!(first.outcome.as_deref(), Some("unknown"), "{event:#?}");
    assert!(first.reason.as_ref().is_some_and(|why| why.contains("the disk of")), "{first:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_a_machine_had_begun_is_not_begun_again_when_it_comes_back_with_an_empty_disk() {
    let (mut cluster, affected, other, id) = in_the_middle_of_a_hook().await;
    let name = format!("db-{affected}");
    cluster.kill(affected);
    cluster.kill_hooks();
    cluster.lose_disk(affected);
    cluster.hooks.open("gate");
    cluster.start(affected);
    let waits = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("member remove"));
    let advice = cluster.until(affected, "told what to do", waits).await.outside_because.unwrap();
    let address = advice.split(&format!("add {name} ")).nth(1).unwrap().split('`').next().unwrap();
    done(&cluster, other, &["member", "remove", &name]);
    // On a loaded machine it may not answer at once.
    let is_added = async || cluster.says(other, &["member", "add", &name, address]).0 == 0;
    cluster.until_true("a member again", is_added).await;
    ends_well(&cluster, other, &id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_only_what_it_kept_of_its_hooks_is_lost() {
    let (mut cluster, affected, other, id) = in_the_middle_of_a_hook().await;
    cluster.kill(affected);
    cluster.kill_hooks();
    cluster.lose_spool(affected);
    cluster.hooks.open("gate");
    cluster.start(affected);
    ends_well(&cluster, other, &id).await;
}
