//! A metadata service that returns different documents at each poll, up to the length limit, to all replicas.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::cluster::Cluster;
use super::memory;
use super::workload::hook;
use crate::machine_share::alone;

/// Upper limit of the cost of any lie. Debug builds need more memory.
const MEMORY: u64 = if cfg!(debug_assertions) { 160 << 20 } else { 64 << 20 };
const DISK: u64 = 256 << 20;
/// Number of polls of every replica for which each lie lasts.
const IN_EVERY_RUN: usize = 4;
/// Together as many polls as an hour has.
const OF_AN_HOUR: usize = 3_600 / LIES.len();
/// Maximum time of the approval beside the lies.
const APPROVED_WITHIN: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The number of events, and of machines for each event: documents of up to 1 MiB.
const LIES: [(u64, u64); 4] = [(600, 1), (150, 150), (25, 900), (750, 0)];

/// Size of a folder's content, in bytes.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

struct Lied {
    cluster: Cluster,
    most_on_disk: u64,
}

impl Lied {
    /// Waits until every replica has received `polls` lies of this kind.
    async fn hears(&mut self, events: u64, resources: u64, polls: usize) {
        let fault = json!({ "kind": "lies", "events": events, "resources": resources });
        self.cluster.cloud.fault(json!({ "fault": fault, "on": "get" })).await;
        let before = self.last_poll().await;
        while self.last_poll().await < before + 3 * polls as u64 {
            self.look();
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.cluster.cloud.clear_faults().await;
    }

    /// The number of all requests at the time of the first VM's last poll.
    async fn last_poll(&self) -> u64 {
        self.cluster.cloud.gets("db-0").await.last().map_or(0, |get| get["seq"].as_u64().unwrap())
    }

    fn look(&mut self) {
        for place in 0..3 {
            let bytes = bytes_of(&self.cluster.configuration(place).with_extension("data"));
            self.most_on_disk = self.most_on_disk.max(bytes);
        }
    }

    /// Each replica's explanation of the event, and its status of the metadata service.
    async fn why_not(&self, event: &str) -> Vec<String> {
        let mut said = Vec::new();
        for place in 0..3 {
            let (_, explained, wrong) = self.cluster.says(place, &["explain", event]);
            let status = self.cluster.status(place).await;
            let warnings = status.map(|status| status.warnings.into_iter().map(|it| it.text).collect::<Vec<_>>());
            said.push(format!("{explained}{wrong}{warnings:?}"));
        }
        said
    }

    /// Announces an event and waits until hooks have run and the event is approved and over, while the service lies.
    async fn approves(&self) {
        let event = self.cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
        let began = Instant::now();
        while self.cluster.cloud.approvals(&event).is_empty() {
            assert!(began.elapsed() < APPROVED_WITHIN, "not approved: {:#?}", self.why_not(&event).await);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.cluster.cloud.finish(&event).await;
        self.cluster.until_stage(0, &event, "closed").await;
        assert_eq!(self.cluster.cloud.approvals(&event).len(), 1);
    }
}

async fn lie_for(kinds: &[(u64, u64)], polls: usize, each: &'static str) {
    let _alone = alone().await;
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain"), hook("restore")])
        .also("metadata.poll_interval", each)
        .start()
        .await;
    let held = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 2, "notice": "4h" })).await;
    cluster.seen_by_all(&held).await;
    let (status, _, told) = cluster.says(0, &["hold", &held, "--until", "2h", "--reason", "not now"]);
    assert_eq!(status, 0, "{told}");
    let mut lied = Lied { cluster, most_on_disk: 0 };
    for &(events, resources) in kinds {
        lied.hears(events, resources, polls).await;
        let fault = json!({ "kind": "lies", "events": events, "resources": resources });
        lied.cluster.cloud.fault(json!({ "fault": fault, "on": "get" })).await;
        lied.approves().await;
        lied.cluster.cloud.clear_faults().await;
    }
    lied.look();
    let Lied { cluster, most_on_disk } = lied;
    for place in 0..3 {
        let peak = memory::peak(&cluster, place);
        println!("replica {place}: at the most {:.1} MiB of memory", memory::mib(peak));
        assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
        assert!(cluster.log(place).contains("document over its limit"), "it is not told");
        let warnings = cluster.status(place).await.unwrap().warnings;
        assert!(
            warnings.iter().any(|warning| warning.text.contains("lists more events than allclear keeps")),
            "{warnings:#?}"
        );
        let stage = cluster.event(place, &held).await.unwrap().stage;
        assert!(["announced", "preparing"].contains(&stage.as_str()), "an operator holds it, and it is {stage}");
    }
    assert!(cluster.cloud.approvals(&held).is_empty());
    println!("at the most {:.1} MiB of disk", memory::mib(most_on_disk));
    assert!(most_on_disk < DISK, "{:.1} MiB", memory::mib(most_on_disk));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_lies_costs_little_memory_and_disk_and_delays_no_approval() {
    crate::left_out::flood!();
    // A debug build on a shared machine has no time to read more.
    lie_for(&LIES.map(|(events, resources)| (events / 4, resources))[..2], IN_EVERY_RUN, "1s").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: as many polls as an hour has"]
async fn a_service_that_lies_for_an_hour_costs_little_memory_and_disk_and_delays_no_approval() {
    lie_for(&LIES, OF_AN_HOUR, "100ms").await;
}
