//! A replica that is cut off from the leader while a step runs: the workload continues, and no further step starts.

use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::{Checkpoint, Drain};
use allclear::wire::pb::allclear::workload::v1::outcome::Variant;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use serde_json::json;

use super::cluster::Cluster;
use super::cuts::lost_its_leader;
use super::dialled::{Dialled, done, hello};
use super::sessions::outcomes;

struct Scene {
    cluster: Cluster,
    id: String,
    database: Dialled,
    step: pb::Step,
    affected: usize,
    other: usize,
}

/// The replica of the affected VM has just been cut off, and the workload has a step.
async fn cut_in_the_middle(hooks: Vec<pb::Hook>) -> Scene {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).with_links().start().await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let greeting = pb::Hello { lease_ms: Some(1_000), ..hello("database", hooks) };
    let mut database = Dialled::at(&cluster.door(affected), greeting).await;
    // An unreachable replica is no reason to approve a platform event.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": affected })).await;
    let step = database.step().await;
    cluster.cut_off(affected);
    cluster.until(affected, "without a leader", lost_its_leader).await;
    Scene { cluster, id, database, step, affected, other }
}

#[tokio::test]
async fn a_step_that_ends_while_its_replica_is_cut_off_is_kept_and_nothing_is_begun_before_it_is_back() {
    let hooks = [Checkpoint, Drain].map(super::dialled::hook).into();
    let Scene { cluster, id, mut database, step, affected, other } = cut_in_the_middle(hooks).await;
    database.ends(&step.attempt, done()).await;
    // Longer than the workload's lease.
    database.is_only_answered(10).await;
    let known = cluster.event(other, &id).await.unwrap();
    assert_eq!(outcomes(&known), [("checkpoint", "run", None)]);
    let stays = cluster.status(affected).await.unwrap().workloads;
    assert!(stays.iter().all(|workload| workload.connected), "{stays:?}");
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    cluster.heal();
    database.acknowledged(&step.attempt).await;
    database.does(Drain).await;
    let event = cluster.until_stage(other, &id, "started").await;
    assert_eq!(outcomes(&event), [("checkpoint", "run", Some("done")), ("drain", "run", Some("done"))]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_step_whose_time_is_over_while_its_replica_is_cut_off_is_told_to_stop_in_time() {
    let slow = pb::Hook {
        timeout_ms: Some(5_000),
        attempts: Some(1),
        can_confirm: false,
        on_failure: pb::OnFailure::Continue.into(),
        ..super::dialled::hook(Drain)
    };
    let Scene { cluster, id, mut database, step, other, .. } = cut_in_the_middle(vec![slow]).await;
    let Told::Cancel(cancel) = database.next().await.unwrap() else { panic!("it is not told to stop") };
    assert_eq!(cancel.attempt, step.attempt);
    database.ends(&step.attempt, Variant::Cancelled(pb::Nothing {})).await;
    cluster.heal();
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(other, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("timed_out"))]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
