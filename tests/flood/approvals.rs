//! An approval while every listener of the approving replica is flooded, compared with an approval without the flood.

use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::Cluster;
use super::memory;
use super::pki::{Pki, address};
use super::somebody::{Doors, Somebody};
use super::workload::hook;
use crate::machine_share::alone;

/// Number of events without the flood, and again during the flood; more events give better figures.
const EVENTS: &str = "ALLCLEAR_FLOOD";
const IN_EVERY_RUN: usize = 3;
/// Maximum delay of an approval by the flood, in a run on a shared machine; the claimed figure needs an idle machine.
const LATER_AT_MOST: Duration = Duration::from_secs(5);
const LATER_IN_TIME: Duration = Duration::from_millis(100);
/// Debug builds need more memory.
const MEMORY: u64 = if cfg!(debug_assertions) { 160 << 20 } else { 64 << 20 };

/// Time from the event's announcement until the platform received the approval.
async fn approval(cluster: &Cluster, vm: usize) -> Duration {
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": vm })).await;
    let began = Instant::now();
    cluster.until_true("an approval", async || !cluster.cloud.approvals(&event).is_empty()).await;
    let took = began.elapsed();
    cluster.cloud.finish(&event).await;
    // Ask a replica without a flood: a query to the flooded replica takes time.
    cluster.until_stage(vm, &event, "closed").await;
    assert_eq!(cluster.cloud.approvals(&event).len(), 1);
    took
}

async fn approvals(cluster: &Cluster, vm: usize, count: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..count {
        took.push(approval(cluster, vm).await);
    }
    took.sort();
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_at_every_door_costs_little_memory_and_delays_no_approval() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let asked = std::env::var(EVENTS).ok().map(|text| text.parse().expect("a number of events"));
    let count = asked.unwrap_or(IN_EVERY_RUN);
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0", "db-1", "db-2"])
        .tables(pki.tables(""))
        .also("metadata.poll_interval", "100ms")
        .also("workloads.allow_uids", "[64220]")
        .keeps_its_leader();
    let cluster = plan.workload("database", vec![hook("drain")]).start().await;
    let victim = cluster.leader(0).await;
    let vm = (victim + 1) % 3;
    let term = cluster.status(victim).await.unwrap().term;
    let calm = approvals(&cluster, vm, count).await;
    let before = memory::resident(&cluster, victim);

    let [operators, workloads] =
        ["operator", "workloads"].map(|door| cluster.configuration(victim).with_extension(door));
    let somebody = Somebody::floods(&Doors {
        operators: &operators,
        workloads: &workloads,
        status: cluster.replicas[victim].page.trim_start_matches("http://"),
        replicas: &address(&cluster, victim),
    });
    let flooded = approvals(&cluster, vm, count).await;

    let peak = memory::peak(&cluster, victim);
    println!("{}", somebody.told());
    println!("approved without a flood within {calm:?}");
    println!("approved within the flood within {flooded:?}");
    println!("resident before {:.1} MiB, at the most {:.1} MiB", memory::mib(before), memory::mib(peak));
    let (median_calm, median_flooded) = (calm[count / 2], flooded[count / 2]);
    let later = median_flooded.saturating_sub(median_calm);
    println!("later by {later:?}");
    let at_most = if asked.is_some() { LATER_IN_TIME } else { LATER_AT_MOST };
    assert!(later < at_most, "approved {later:?} later");
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
    let after = cluster.until(victim, "led", |status| status.quorum && status.leader.is_some()).await;
    assert_eq!(after.term, term, "leadership was lost");
    let log = cluster.log(victim);
    let told = log.lines().filter(|line| line.contains("connection rejected")).count();
    assert!((1..100).contains(&told), "{told} lines about those who were turned away");
}
