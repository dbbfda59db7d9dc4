//! Messages whose last byte never comes, as many as fit: from the thief of a member's certificate, whose messages may be
//! large, and of a removed replica's, whose are not listened to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allclear::net::dial::Way;
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

/// Of one thief; each with as many calls as it may have open.
const CONNECTIONS: usize = 4;
const CALLS: usize = 100;
/// Each call that is refused comes again.
const ROUNDS: usize = 2;
/// What may be in one message, and another byte would be too much.
const MESSAGE: usize = 4 << 20;
const PIECE: usize = 64 << 10;
/// Debug builds take more.
const MEMORY: u64 = if cfg!(debug_assertions) { 192 << 20 } else { 128 << 20 };

/// The message is said to be as long as one may be, and stops before its end.
fn message(said: Arc<AtomicU64>) -> Body {
    let length = u32::try_from(MESSAGE).unwrap().to_be_bytes();
    let head = Bytes::from([[0].as_slice(), &length].concat());
    let piece = Bytes::from(vec![0x0a; PIECE]);
    let pieces = stream::iter(0..MESSAGE / PIECE - 1).map(move |_| {
        said.fetch_add(PIECE as u64, Ordering::Relaxed);
        piece.clone()
    });
    let words = stream::iter([head]).chain(pieces).chain(stream::pending());
    Body::from_stream(words.map(Ok::<_, std::convert::Infallible>))
}

async fn asks(mut channel: Channel, said: Arc<AtomicU64>) {
    for _ in 0..ROUNDS {
        let request = axum::http::Request::post("/allclear.raft.v1.Raft/Append")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(tonic::body::Body::new(message(said.clone())))
            .unwrap();
        std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
        // It is refused, or waited for.
        let _ = channel.call(request).await;
    }
}

/// What all that this thief does costs the replica, while an event goes its way. Bytes that the thief said.
async fn held(cluster: &Cluster, victim: usize, shown: &Arc<Credentials>) -> u64 {
    let said = Arc::new(AtomicU64::new(0));
    let mut thieves = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let address = address(cluster, victim);
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = tls::dial(&endpoint, shown, &format!("db-{victim}"), &Way::to(&address));
        for _ in 0..CALLS {
            thieves.spawn(asks(channel.clone(), said.clone()));
        }
    }
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 - victim })).await;
    cluster.until_true("an approval", async || !cluster.cloud.approvals(&event).is_empty()).await;
    cluster.cloud.finish(&event).await;
    cluster.until_stage(1 - victim, &event, "closed").await;
    // The others are waited for.
    for _ in 0..CONNECTIONS * CALLS * 3 / 4 {
        thieves.join_next().await.unwrap().unwrap();
    }
    let peak = memory::peak(cluster, victim);
    println!(
        "{:.1} MiB said, at the most {:.1} MiB held",
        memory::mib(said.load(Ordering::Relaxed)),
        memory::mib(peak)
    );
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
    said.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_never_end_take_little_memory() {
    let _alone = alone().await;
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).also("metadata.poll_interval", "100ms");
    let mut cluster = plan.workload("database", vec![hook("drain")]).start().await;
    let [member, stolen] = ["db-1", "db-2"].map(|replica| credentials(&pki, replica));
    cluster.stop(2);
    cluster.until_true("db-2 is removed", async || cluster.says(0, &["member", "remove", "db-2"]).0 == 0).await;
    let victim = cluster.leader(0).await;
    let removed = held(&cluster, victim, &stolen).await;
    let alive = held(&cluster, victim, &member).await;
    assert!(removed < alive, "{removed} bytes of a removed replica were listened to, {alive} of a member");
}
