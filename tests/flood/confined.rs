//! Three replicas with exactly the memory limit of `deploy/kubernetes`: every attack on answers at every listener, a
//! minute each. The test needs root, a memory control group, and a release build, named by `ALLCLEAR_RELEASE`.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::attacks::{Stream, Target};
use super::cluster::Cluster;
use super::frames::{PREFACE, get, settings, whole_call};
use super::knock::knock;
use super::memory;
use super::pki::{Pki, address};
use super::unread::{EVENTS, SAID_WITHIN, ask_in_vain, questions, reflection};
use crate::machine_share::alone;

const GROUPS: &str = "/sys/fs/cgroup/memory";
/// Two polls a second of each replica.
const POLLS_OF_A_MINUTE: usize = 120;

/// The memory limit of the manifest, in bytes.
fn limit() -> u64 {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/statefulset.yaml");
    let text = std::fs::read_to_string(manifest).unwrap();
    let limits = text.split_once("limits:").unwrap().1;
    let memory = limits.split_once("memory: ").unwrap().1.split_once("Mi").unwrap().0;
    memory.parse::<u64>().unwrap() << 20
}

/// Replaces itself with a replica in a control group of its own.
fn launcher() -> Vec<String> {
    let script = format!(
        "group={GROUPS}/allclear-$$ && mkdir $group && echo {} > $group/memory.limit_in_bytes && \
         echo $$ > $group/cgroup.procs && exec \"$@\"",
        limit()
    );
    ["sh", "-c", &script, "sh"].map(Into::into).into()
}

/// The control groups of the running replicas; removed at the end, when the groups are empty.
struct Confined {
    groups: Vec<PathBuf>,
    /// Dropped before the groups.
    cluster: Option<Cluster>,
}

impl Confined {
    fn cluster(&self) -> &Cluster {
        self.cluster.as_ref().unwrap()
    }

    /// Peak memory of each group since the last call, including memory that the kernel holds for the group.
    fn told(&self) -> Vec<String> {
        let told = |group: &PathBuf| {
            let peak = group.join("memory.max_usage_in_bytes");
            let most: u64 = std::fs::read_to_string(&peak).unwrap().trim().parse().unwrap();
            std::fs::write(peak, "0").unwrap();
            format!("{:.1} MiB", memory::mib(most))
        };
        self.groups.iter().map(told).collect()
    }

    async fn for_a_minute(&self, what: &str, open: Vec<Box<dyn Stream>>) {
        let cluster = self.cluster();
        let before = cluster.cloud.polls("db-0").await;
        let polled = async || cluster.cloud.polls("db-0").await >= before + POLLS_OF_A_MINUTE;
        cluster.until_true("a minute", polled).await;
        println!("{what}: {} connections, at the most {:?}", open.len(), self.told());
        drop(open);
        for place in 0..3 {
            cluster.until(place, "led", |status| status.quorum && status.events.len() >= EVENTS).await;
        }
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        drop(self.cluster.take());
        for group in &self.groups {
            if let Err(error) = std::fs::remove_dir(group) {
                println!("{} stays: {error}", group.display());
            }
        }
    }
}

async fn confined(pki: &Pki) -> Confined {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).named(&[], launcher());
    let mut cluster = plan.cold().await;
    if let Ok(program) = std::env::var("ALLCLEAR_RELEASE") {
        (0..3).for_each(|place| cluster.replica_runs(place, Path::new(&program)));
    }
    cluster.start_all();
    cluster.ready().await;
    let group = |place| PathBuf::from(format!("{GROUPS}/allclear-{}", cluster.pid(place).unwrap()));
    let confined = Confined { groups: (0..3).map(group).collect(), cluster: Some(cluster) };
    for _ in 0..EVENTS {
        let order = json!({ "type": "Freeze", "source": "Platform", "vms": [0], "notice": "1h" });
        confined.cluster().cloud.announce(order).await;
    }
    for place in 0..3 {
        confined.cluster().until(place, "aware", |status| status.events.len() >= EVENTS).await;
    }
    confined
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes, root and a control group of memory"]
async fn with_the_memory_that_kubernetes_gives_no_replica_is_killed() {
    let _alone = alone().await;
    if !Path::new(GROUPS).join("memory.limit_in_bytes").exists() || !nix::unistd::geteuid().is_root() {
        println!("SKIPPED: it needs root and {GROUPS}");
        return;
    }
    let pki = Pki::new();
    let confined = confined(&pki).await;
    let cluster = confined.cluster();
    println!("limit {:.1} MiB, before {:?}", memory::mib(limit()), confined.told());

    let status =
        |place: usize| Target::Port(cluster.replicas[place].page.trim_start_matches("http://").parse().unwrap());
    let closed = (0..200).flat_map(|number| get(2 * number + 1, "/v1/status"));
    let http2: Vec<u8> = [PREFACE, &settings(0)].concat().into_iter().chain(closed).collect();
    let http1 = b"GET /v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(200);
    for (what, words, count) in [("HTTP/2", &http2, 60), ("HTTP/1.1", &http1, 60), ("all of HTTP/1.1", &http1, 128)] {
        let mut open = Vec::new();
        for place in 0..3 {
            for _ in 0..count {
                let mut stream = status(place).dial().await.unwrap();
                let _ = timeout(SAID_WITHIN, stream.write_all(words)).await;
                open.push(stream);
            }
        }
        confined.for_a_minute(&format!("status port, {what}"), open).await;
    }
    for (door, call) in [
        ("operator", "/allclear.operator.v1.Operator/GetStatus"),
        ("operator", "/allclear.operator.v1.Operator/Watch"),
        ("workloads", "/allclear.workload.v1.Workloads/WatchEvents"),
    ] {
        let mut open = Vec::new();
        for place in 0..3 {
            let socket = Target::Socket(cluster.configuration(place).with_extension(door));
            open.extend(ask_in_vain(&socket, |stream| whole_call(stream, call)).await);
        }
        confined.for_a_minute(call, open).await;
    }
    let mut open: Vec<Box<dyn Stream>> = Vec::new();
    for place in 0..3 {
        for window in [0, 1, super::frames::OPEN].repeat(20) {
            let member = ["db-0", "db-1", "db-2"][(place + 1) % 3];
            let mut stream = knock(&address(cluster, place), Some(pki.of("ca", member))).await.unwrap();
            let words = [settings(window), questions(window, reflection("allclear.operator.v1.Operator"))].concat();
            let _ = timeout(SAID_WITHIN, stream.write_all(&words)).await;
            open.push(Box::new(stream));
        }
    }
    confined.for_a_minute("between replicas, as a member", open).await;
}
