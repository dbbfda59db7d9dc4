//! Groups: the role of a workload decides where a failover runs.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::{Cluster, Plan};
use super::workload::hook;

/// Three replicas whose VMs carry one workload that reports its role.
fn with_primary(vm: &'static str) -> Plan {
    let hooks = vec![hook("failover"), hook("drain").waits_for("drained"), hook("restore")];
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).with_primary(vm)
}

async fn until_roles(cluster: &Cluster, expected: [&str; 3]) {
    let are = |status: &Status| status.workloads.iter().map(|each| each.role.as_str()).eq(expected);
    cluster.until(0, "the roles", are).await;
}

fn phases_of(event: &Event, vm: &str) -> Vec<String> {
    event.hooks.iter().filter(|hook| hook.vm == vm).map(|hook| hook.phase.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_affected_members_only_the_primary_fails_over() {
    let cluster = with_primary("db-1").start().await;
    until_roles(&cluster, ["replica", "primary", "replica"]).await;
    cluster.hooks.open("drained");
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vms": [0, 1] })).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(phases_of(&event, "db-0"), ["drain", "restore"]);
    assert_eq!(phases_of(&event, "db-1"), ["failover", "drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

/// On a busy VM, a program that takes 0.2 s elsewhere takes seconds, every time.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_takes_three_seconds_tells_the_role_all_the_same() {
    let cluster = with_primary("db-1").start().await;
    until_roles(&cluster, ["replica", "primary", "replica"]).await;
    std::fs::write(cluster.hooks.path("slow"), "").unwrap();
    cluster.hooks.make_primary("db-0");
    until_roles(&cluster, ["primary", "replica", "replica"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_is_run_when_a_replica_becomes_the_primary_before_the_all_clear() {
    let cluster = with_primary("db-1").start().await;
    until_roles(&cluster, ["replica", "primary", "replica"]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.hooks.make_primary("db-0");
    until_roles(&cluster, ["primary", "replica", "replica"]).await;
    cluster.hooks.open("drained");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(phases_of(&event, "db-0"), ["drain", "failover", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_without_a_primary_is_critical_until_it_has_one() {
    let cluster = with_primary("db-1").start().await;
    until_roles(&cluster, ["replica", "primary", "replica"]).await;
    let is_well = async || cluster.says(0, &["status", "--check"]).0 == 0;
    cluster.until_true("a check without a fault", is_well).await;
    cluster.hooks.make_primary("nobody");
    let has_none = |status: &Status| status.groups.iter().any(|group| group.primary_fault.is_some());
    cluster.until(0, "the missing primary", has_none).await;
    let (code, line, _) = cluster.says(0, &["status", "--check"]);
    let fault = "has no primary: db-0, db-1, db-2 all say replica";
    assert!(code == 2 && line.contains(fault), "{code}: {line}");
    assert!(cluster.says(2, &["status"]).1.contains(fault));
    let (_, metrics) = cluster.page(0, "/metrics").await;
    for gauge in ["{state=\"absent\"} 1\n", "{state=\"several\"} 0\n"] {
        assert!(metrics.contains(&format!("allclear_group_primary_faults{gauge}")), "{metrics}");
    }
    // A server without an answer may be the missing primary.
    cluster.hooks.open("mute-db-1");
    let fault = "has no known primary: the role of db-1 is not known, and db-0, db-2 say replica";
    cluster.until_true("the silent member", async || cluster.says(0, &["status"]).1.contains(fault)).await;
    let (code, line, _) = cluster.says(0, &["status", "--check"]);
    assert!(code == 2 && line.contains(fault), "{code}: {line}");
    cluster.hooks.make_primary("db-2");
    cluster.until(0, "a primary", |status: &Status| !has_none(status)).await;
    cluster.hooks.shut("mute-db-1");
    cluster.until_true("a check without a fault", is_well).await;
}

/// An operator of an isolated replica decides about an approval by the present role of the replica's own member.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_a_replica_shows_the_present_role_of_its_own_member() {
    let mut cluster = with_primary("db-1").start().await;
    until_roles(&cluster, ["replica", "primary", "replica"]).await;
    cluster.kill(1);
    cluster.kill(2);
    cluster.until(0, "no quorum", |status: &Status| !status.quorum).await;
    cluster.hooks.make_primary("db-0");
    let is_primary =
        |status: &Status| status.workloads.iter().any(|workload| workload.vm == "db-0" && workload.role == "primary");
    cluster.until(0, "the present role", is_primary).await;
    let unknown = "allclear_workload_members{state=\"unknown\"} 2\n";
    let are_told = async || cluster.page(0, "/metrics").await.1.contains(unknown);
    cluster.until_true("two members whose state is unknown here", are_told).await;
}
