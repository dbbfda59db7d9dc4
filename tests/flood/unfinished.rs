//! Messages without their last byte, as many as fit: from the thief of a member's certificate, whose messages may be
//! large, and from the thief of a removed replica's certificate, whose messages are rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allclear::net::dial::DialTarget;
use allclear::net::tls::{self, Credentials};
use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::client::GrpcService as _;
use tonic::transport::{Channel, Endpoint};

use super::cluster::Cluster;
use super::memory;
use super::pki::{Pki, address, credentials};
use super::workload::hook;
use crate::machine_share::alone;

/// Connections of one thief; each has as many calls as one connection may have open.
const CONNECTIONS: usize = 4;
const CALLS: usize = 100;
/// Refused calls before an event is announced: by then the limit leaves no space for one more message.
const REFUSED: u64 = 2 * (CONNECTIONS * CALLS) as u64;
const APPEND: &str = "/allclear.raft.v1.Raft/Append";
/// Maximum length of one message; one more byte would be too much.
const APPENDED: usize = 4 << 20;
const GREET: &str = "/allclear.cluster.v1.Consensus/Greet";
const GREETED: usize = 1 << 20;
const PIECE: usize = 64 << 10;
/// Maximum memory of a replica. Debug builds need more.
const WITH_A_MEMBER: u64 = if cfg!(debug_assertions) { 192 << 20 } else { 128 << 20 };
const WITH_A_REMOVED_REPLICA: u64 = if cfg!(debug_assertions) { 96 << 20 } else { 48 << 20 };

/// Counters of the thieves.
#[derive(Default)]
struct Done {
    bytes: AtomicU64,
    refused: AtomicU64,
}

/// A message that announces the maximum length, and stops before its end.
fn message(length: usize, done: Arc<Done>) -> Body {
    let said = u32::try_from(length).unwrap().to_be_bytes();
    let head = Bytes::from([[0].as_slice(), &said].concat());
    let piece = Bytes::from(vec![0x0a; PIECE]);
    let pieces = stream::iter(0..length / PIECE - 1).map(move |_| {
        done.bytes.fetch_add(PIECE as u64, Ordering::Relaxed);
        piece.clone()
    });
    let words = stream::iter([head]).chain(pieces).chain(stream::pending());
    Body::from_stream(words.map(Ok::<_, std::convert::Infallible>))
}

/// Repeats a call. Each call ends when the replica refuses the call.
async fn asks(mut channel: Channel, path: &'static str, length: usize, done: Arc<Done>) {
    loop {
        let request = axum::http::Request::post(path)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(tonic::body::Body::new(message(length, done.clone())))
            .unwrap();
        std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
        let _ = channel.call(request).await;
        done.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts thieves at one replica, which run until dropped; returns as soon as calls are refused.
async fn thieves(
    cluster: &Cluster,
    place: usize,
    shown: &Arc<Credentials>,
    path: &'static str,
    length: usize,
) -> (JoinSet<()>, Arc<Done>) {
    let (done, mut thieves) = (Arc::new(Done::default()), JoinSet::new());
    for _ in 0..CONNECTIONS {
        let address = address(cluster, place);
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = tls::dial(&endpoint, shown, &format!("db-{place}"), &DialTarget::to(&address));
        for _ in 0..CALLS {
            thieves.spawn(asks(channel.clone(), path, length, done.clone()));
        }
    }
    cluster.until_true("refusals", async || done.refused.load(Ordering::Relaxed) > REFUSED).await;
    (thieves, done)
}

async fn goes_its_way(cluster: &Cluster, vm: usize) {
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": vm })).await;
    cluster.until_true("an approval", async || !cluster.cloud.approvals(&event).is_empty()).await;
    cluster.cloud.finish(&event).await;
    cluster.until_stage(vm, &event, "closed").await;
}

fn is_small(cluster: &Cluster, place: usize, done: &Done, most: u64) {
    let (said, peak) = (memory::mib(done.bytes.load(Ordering::Relaxed)), memory::peak(cluster, place));
    println!("{said:.1} MiB said, at the most {:.1} MiB held", memory::mib(peak));
    assert!(peak < most, "{:.1} MiB", memory::mib(peak));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_never_end_take_little_memory_and_no_room_of_members() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).also("metadata.poll_interval", "100ms");
    let mut cluster = plan.keeps_its_leader().workload("database", vec![hook("drain")]).start().await;
    let [member, stolen] = ["db-1", "db-2"].map(|replica| credentials(&pki, replica));
    cluster.stop(2);
    cluster.until_true("db-2 is removed", async || cluster.says(0, &["member", "remove", "db-2"]).0 == 0).await;
    let victim = cluster.leader(0).await;
    let other = 1 - victim;
    let term = cluster.status(victim).await.unwrap().term;
    // The follower as well, as the receiver of the leader's messages.
    for (place, path, length) in [(victim, APPEND, APPENDED), (other, GREET, GREETED), (victim, GREET, GREETED)] {
        let (thieves, done) = thieves(&cluster, place, &stolen, path, length).await;
        goes_its_way(&cluster, other).await;
        is_small(&cluster, place, &done, WITH_A_REMOVED_REPLICA);
        drop(thieves);
    }
    let led = cluster.until(victim, "led", |status| status.quorum && status.leader.is_some()).await;
    assert_eq!(led.term, term, "leadership was lost");
    let (thieves, done) = thieves(&cluster, victim, &member, APPEND, APPENDED).await;
    is_small(&cluster, victim, &done, WITH_A_MEMBER);
    drop(thieves);
    goes_its_way(&cluster, other).await;
}
