//! Frames without end that cost work and request nothing, at the port between replicas: in plain text and with the
//! certificate of a member; the certificate gives no exemption.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::attacks::{Stream, Target};
use super::cluster::Cluster;
use super::frames::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PADDED, PING, PREFACE, PRIORITY, PRIORITY_UPDATE, RESET, SETTINGS, UNKNOWN,
    WINDOW_UPDATE, call, frame,
};
use super::knock::knock;
use super::pki::{Pki, address};
use super::plan::Plan;
use super::workload::hook;
use crate::machine_share::alone;

/// Connections for each kind of frame.
const EACH: usize = 4;
const POLLS: usize = 50;
/// The flood's maximum share of one processor.
const SHARE: f64 = 0.25;
const GREET: &str = "/allclear.cluster.v1.Consensus/Greet";

/// Bytes to send once, and bytes to send repeatedly, each time with a stream number unused so far.
struct Kind {
    begins: Vec<u8>,
    again: fn(u32) -> Vec<u8>,
}

fn kinds() -> Vec<Kind> {
    let nothing = Vec::new;
    // The call's message never ends.
    let open = || call(1, GREET);
    let of = |begins, again| Kind { begins, again };
    vec![
        of(nothing(), |_| frame(PING, 0, 0, &[0; 8])),
        of(nothing(), |_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        of(open(), |_| frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        of(nothing(), |stream| frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1])),
        of(open(), |_| frame(RESET, 0, 1, &[0, 0, 0, 8])),
        of(nothing(), |stream| [call(stream, GREET), frame(RESET, 0, stream, &[0, 0, 0, 8])].concat()),
        of(nothing(), |_| frame(SETTINGS, 0, 0, &[])),
        // A header block without an end.
        of(frame(HEADERS, 0, 1, &[]), |_| frame(CONTINUATION, 0, 1, &[])),
        of(open(), |_| frame(DATA, 0, 1, &[])),
        of(open(), |_| frame(DATA, PADDED, 1, &[0])),
        of(nothing(), |_| frame(UNKNOWN, 0, 0, &[])),
        of(nothing(), |_| frame(PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 1, b'u', b'=', b'1'])),
        of(nothing(), |_| frame(GOAWAY, 0, 0, &[0; 8])),
    ]
}

/// How to connect to a replica.
enum Way {
    PlainText,
    As(&'static str, Pki),
}

impl Way {
    /// `None` if the certificate has reached its limit of connections.
    async fn dial(&self, to: &str) -> Option<Box<dyn Stream>> {
        Some(match self {
            Self::PlainText => {
                let mut stream = Target::Port(to.parse().unwrap()).dial().await.unwrap();
                stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
                stream
            }
            Self::As(member, pki) => Box::new(knock(to, Some(pki.of("ca", member))).await.ok()?),
        })
    }
}

/// Sends until the connection ends in any way; received bytes are discarded.
async fn goes_on(mut stream: Box<dyn Stream>, kind: Kind, said: Arc<AtomicU64>) {
    if stream.write_all(&kind.begins).await.is_err() {
        return;
    }
    let (mut hears, mut says) = tokio::io::split(stream);
    let hearing = async { while hears.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {} };
    let saying = async {
        for turn in 0.. {
            let words: Vec<u8> = (0..1_000).flat_map(|place| (kind.again)(2 * (1_000 * turn + place) + 3)).collect();
            if says.write_all(&words).await.is_err() {
                return;
            }
            said.fetch_add(1_000, Ordering::Relaxed);
        }
    };
    tokio::join!(hearing, saying);
}

/// Processor time used by a replica.
fn worked(cluster: &Cluster, place: usize) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", cluster.pid(place).unwrap())).unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Linux reports processor time to programs in hundredths of a second.
    Duration::from_millis(10 * (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()))
}

/// Share of one processor, over `POLLS` polls of the metadata service.
async fn share(cluster: &Cluster, place: usize) -> f64 {
    let (before, began) = (worked(cluster, place), Instant::now());
    let polls = cluster.cloud.polls("db-0").await;
    cluster.until_true("more polls", async || cluster.cloud.polls("db-0").await >= polls + POLLS).await;
    worked(cluster, place).saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64()
}

async fn is_flooded(cluster: &Cluster, way: &Way) {
    let victim = cluster.leader(0).await;
    let before = cluster.status(victim).await.unwrap();
    let calm = share(cluster, victim).await;
    let (said, to) = (Arc::new(AtomicU64::new(0)), address(cluster, victim));
    let mut attackers = JoinSet::new();
    for _ in 0..EACH {
        for kind in kinds() {
            if let Some(stream) = way.dial(&to).await {
                attackers.spawn(goes_on(stream, kind, said.clone()));
            }
        }
    }
    cluster.until_true("a flood", async || said.load(Ordering::Relaxed) > 100_000).await;
    let within = share(cluster, victim).await;
    let vm = (victim + 1) % 3;
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": vm })).await;
    cluster.until_true("an approval", async || !cluster.cloud.approvals(&event).is_empty()).await;
    cluster.cloud.finish(&event).await;
    cluster.until_stage(vm, &event, "closed").await;
    println!("{} frames: {calm:.2} of a processor without them, {within:.2} with", said.load(Ordering::Relaxed));
    assert!(within < calm + SHARE, "{within:.2} of a processor instead of {calm:.2}");
    let after = cluster.until(victim, "led", |status| status.quorum && status.leader.is_some()).await;
    assert_eq!((after.term, after.leader), (before.term, before.leader), "leadership was lost");
    assert!(after.replicas.iter().all(|replica| replica.reachable), "a replica was lost");
}

fn three() -> Plan {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).also("metadata.poll_interval", "100ms");
    plan.keeps_its_leader().workload("database", vec![hook("drain")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_ask_for_nothing_cost_little_in_plain_text() {
    crate::left_out::flood!();
    let _alone = alone().await;
    is_flooded(&three().also("cluster.insecure", "true").start().await, &Way::PlainText).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_ask_for_nothing_cost_little_from_a_member() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let pki = Pki::new();
    is_flooded(&three().tables(pki.tables("")).start().await, &Way::As("db-1", pki)).await;
}
