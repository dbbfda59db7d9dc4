//! Five replicas with three voters: the learners do everything else as well.

use allclear::wire::pb::allclear::operator::v1::{Replica, Status};
use serde_json::json;

use super::cluster::{Cluster, Plan};
use super::workload::{hook, usual_hooks};

/// `db-3` and `db-4` are learners. Five replicas on a loaded machine need patience with their leader.
fn three_vote() -> Plan {
    Cluster::of(&["db-0", "db-1", "db-2", "db-3", "db-4"])
        .also("cluster.max_voters", "3")
        .also("cluster.election_timeout", "2s")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_on_a_learners_vm_is_prepared_there_approved_once_and_put_back() {
    let cluster = three_vote().workload("database", usual_hooks()).start().await;
    let status = cluster.status(4).await.unwrap();
    assert_eq!(status.role, "learner");
    assert_eq!(status.replicas.iter().map(|each| each.voter).collect::<Vec<_>>(), [true, true, true, false, false]);
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 4 })).await;
    let event = cluster.until_stage(3, &id, "started").await;
    assert!(event.hooks.iter().all(|hook| hook.on == "db-4"), "{event:#?}");
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "failover", "drain", "shutdown", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_approves_what_only_it_sees() {
    let cluster = three_vote().workload("database", vec![hook("drain")]).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1, "seen_by": [3] })).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.seen_by, ["db-3"]);
    assert_eq!(event.approvals.iter().map(|each| each.approver.as_str()).collect::<Vec<_>>(), ["db-3"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_never_goes_to_a_learner_before_a_blow() {
    crate::left_out::long!();
    let mut cluster = three_vote().start().await;
    let leader = cluster.leader(4).await;
    let others: Vec<usize> = (0..3).filter(|place| *place != leader).collect();
    // All voters are affected, so only a learner could take over.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vms": [0, 1, 2] })).await;
    cluster.until_stage(4, &id, "started").await;
    assert_eq!(cluster.leader(4).await, leader);
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    let (_, status) = cluster.stop(leader);
    assert!(status.success());
    let led = |status: &Status| {
        status.quorum && status.leader.as_ref().is_some_and(|led| others.iter().any(|o| *led == format!("db-{o}")))
    };
    cluster.until(4, "led by another voter", led).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn voters_that_are_lost_one_after_the_other_are_made_good_by_learners() {
    let mut cluster = three_vote().also("cluster.replace_after", "3s").start().await;
    let leader = cluster.leader(4).await;
    let lost: Vec<usize> = (0..3).filter(|place| *place != leader).collect();
    for (count, place) in lost.iter().enumerate() {
        cluster.kill(*place);
        let name = format!("db-{place}");
        let replaced = |status: &Status| {
            let votes = |replica: &&Replica| replica.voter && (replica.name == "db-3" || replica.name == "db-4");
            status.replicas.iter().filter(votes).count() == count + 1
                && status.replicas.iter().any(|replica| replica.name == name && replica.member && !replica.voter)
        };
        cluster.until(leader, "without its vote", replaced).await;
    }
    // Two of the first three are gone, and everything goes on.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": lost[0] })).await;
    cluster.until_stage(leader, &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    for place in lost {
        cluster.start(place);
        cluster.until(place, "a learner", |status| status.role == "learner" && status.quorum).await;
    }
}
