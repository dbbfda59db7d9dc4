//! Overlapping events of a group, and hanging databases: every member that can proceed does so, in turn.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::Value;

use super::cluster::Cluster;
use super::members::{THREE, database_on, members, most_stopped, play, reboot};

/// Makes the database of a VM hang while the VM's replica runs: no query and no stop of the database ends.
fn hang(cluster: &Cluster, vm: &str) {
    cluster.hooks.open(&format!("hangs-{vm}"));
}

fn heal(cluster: &Cluster, vm: &str) {
    cluster.hooks.shut(&format!("hangs-{vm}"));
}

async fn knows_that_it_hangs(cluster: &Cluster, vm: &str) {
    let is_not_ready = |status: &Status| database_on(status, vm).state == "not_ready";
    cluster.until(0, "told that it does not answer", is_not_ready).await;
}

/// Users reboot the VMs of two hanging databases: both reboot, in turn, though no hook of these VMs ends.
#[tokio::test(flavor = "multi_thread")]
async fn two_databases_that_hang_are_rebooted_one_after_the_other() {
    crate::left_out::long!();
    let plan = members(&THREE).may_lose(1, "database").also("policy.user_budget", "8s");
    let cluster = plan.start().await;
    for vm in ["db-1", "db-2"] {
        hang(&cluster, vm);
    }
    for vm in ["db-1", "db-2"] {
        knows_that_it_hangs(&cluster, vm).await;
    }
    let mut ids = Vec::new();
    for vm in [1, 2] {
        ids.push(cluster.cloud.announce(reboot("User", &[vm], "15m")).await);
    }
    let started = async |id: &str| cluster.event(0, id).await.is_some_and(|event| event.stage == "started");
    let one = async || started(&ids[0]).await || started(&ids[1]).await;
    cluster.until_true("one of them starts", one).await;
    let (first, second) = if started(&ids[0]).await { (0, 1) } else { (1, 0) };
    assert!(!started(&ids[second]).await, "both at once");
    heal(&cluster, ["db-1", "db-2"][first]);
    cluster.cloud.finish(&ids[first]).await;
    cluster.until_stage(0, &ids[second], "started").await;
    heal(&cluster, ["db-1", "db-2"][second]);
    cluster.cloud.finish(&ids[second]).await;
    for id in &ids {
        let event = cluster.closed_everywhere(id).await;
        assert_eq!(event.start_cause.as_deref(), Some("approved"), "{event:#?}");
        assert_eq!(cluster.cloud.approvals(id).len(), 1);
    }
    let all_serve = |status: &Status| status.members.iter().all(|member| member.state == "in_service");
    cluster.until(0, "all in service", all_serve).await;
}

/// An event of a joint announcement: the VMs, the source and the notice.
type Order = (&'static [usize], &'static str, &'static str);

/// Every event is approved, each once, and no member is out beside the members of its event.
async fn overlap(orders: &[Order]) {
    let cluster = members(&THREE).may_lose(1, "database").start().await;
    let announced: Vec<Value> = orders.iter().map(|(vms, source, notice)| reboot(source, vms, notice)).collect();
    let played = tokio::time::timeout(Duration::from_mins(3), play(&cluster, &announced)).await;
    let events: Vec<Event> = played.unwrap_or_else(|_| panic!("{orders:?}: {}", cluster.hooks.written()));
    for event in &events {
        assert_eq!(event.start_cause.as_deref(), Some("approved"), "{orders:?}: {event:#?}");
        assert_eq!(cluster.cloud.approvals(&event.id).len(), 1, "{orders:?}");
    }
    let most = orders.iter().map(|(vms, ..)| vms.len()).max().unwrap_or(0);
    assert!(most_stopped(&cluster) <= most, "{orders:?}: {}", cluster.hooks.written());
    let all_serve = |status: &Status| status.members.iter().all(|member| member.state == "in_service");
    cluster.until(0, "all in service", all_serve).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_events_of_one_member() {
    overlap(&[(&[0], "Platform", "10m"), (&[0], "Platform", "12m")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_events_of_one_member_and_one_of_another() {
    crate::left_out::long!();
    overlap(&[(&[0], "Platform", "12m"), (&[1], "User", "15m"), (&[0], "User", "10m")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_all_members_and_one_of_each() {
    crate::left_out::long!();
    overlap(&[(&[0, 1, 2], "Platform", "12m"), (&[0], "Platform", "10m"), (&[1], "Platform", "11m")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_share_a_member_in_a_ring() {
    overlap(&[(&[0, 1], "Platform", "10m"), (&[1, 2], "Platform", "11m"), (&[2, 0], "User", "12m")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_two_members_before_one_of_the_third() {
    crate::left_out::long!();
    overlap(&[(&[2], "User", "15m"), (&[0, 1], "Platform", "10m"), (&[1], "Platform", "13m")]).await;
}

/// The event in the middle is held: the other events proceed, and the held event proceeds after its release.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_that_an_operator_holds_keeps_nobody_waiting() {
    crate::left_out::long!();
    let cluster = members(&THREE).may_lose(1, "database").also("policy.give_back_after", "2s").start().await;
    let (code, _, said) = cluster.says(0, &["pause", "--until", "1h", "--reason", "all at once"]);
    assert_eq!(code, 0, "{said}");
    let mut ids = Vec::new();
    for (vms, notice) in [(&[0][..], "12m"), (&[0, 1], "11m"), (&[2], "13m")] {
        ids.push(cluster.cloud.announce(reboot("Platform", vms, notice)).await);
    }
    for id in &ids {
        cluster.seen_by_all(id).await;
    }
    let (code, _, said) = cluster.says(0, &["hold", &ids[1], "--until", "1h", "--reason", "not now"]);
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = cluster.says(0, &["resume", "--reason", "go"]);
    assert_eq!(code, 0, "{said}");
    for id in [&ids[0], &ids[2]] {
        cluster.until_stage(0, id, "started").await;
        cluster.cloud.finish(id).await;
        cluster.closed_everywhere(id).await;
    }
    assert_eq!(most_stopped(&cluster), 1, "{}", cluster.hooks.written());
    let (code, _, said) = cluster.says(0, &["release", &ids[1], "--reason", "now"]);
    assert_eq!(code, 0, "{said}");
    cluster.until_stage(0, &ids[1], "started").await;
    cluster.cloud.finish(&ids[1]).await;
    cluster.closed_everywhere(&ids[1]).await;
}

/// A VM that is gone for longer than events are remembered is not waited for, and is restored after its return.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_that_returns_after_its_event_was_given_up_is_restored() {
    crate::left_out::long!();
    let plan = members(&THREE).may_lose(1, "database");
    let plan =
        plan.also("metadata.stall_after", "2s").also("metadata.stale_after", "3s").also("metadata.forget_after", "5s");
    let mut cluster = plan.start().await;
    let id = cluster.cloud.announce(reboot("Platform", &[0], "10m")).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.kill(0);
    cluster.cloud.finish(&id).await;
    let is_over = |event: &Event| event.stage == "restoring";
    cluster.until_event(1, &id, "over for the others", is_over).await;
    for _ in 0..5 {
        cluster.a_few_polls_later().await;
    }
    let status = cluster.status(1).await.unwrap();
    assert_eq!(database_on(&status, "db-0").state, "returning");
    cluster.start(0);
    let serves = |status: &Status| database_on(status, "db-0").state == "in_service";
    cluster.until(1, "db-0 in service", serves).await;
    assert!(!cluster.hooks.path("stopped-db-0").exists(), "it was restored");
}
