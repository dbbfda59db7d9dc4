//! Unread answers at every listener: together they use little memory, and clients that read are answered.

use std::time::Duration;

use allclear::wire::pb::allclear::workload::v1::WatchEventsRequest;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use super::attacks::{Stream, Target};
use super::cluster::Cluster;
use super::dialled::client;
use super::doors::{LIMIT, MEMORY, between_replicas, one_replica, socket, status};
use super::frames::{DATA, END_STREAM, OPEN, PREFACE, call, frame, get, message, settings, whole_call};
use super::knock::knock;
use super::memory;
use super::pki::{Pki, address};
use crate::machine_share::alone;

pub(crate) const EVENTS: usize = 200;
/// Number of clients of each kind of reading. The calls that they leave open together stay below the limit.
const READERS: usize = 20;
const QUESTIONS: u32 = 64;
const LEFT_OPEN: u32 = 3;
/// Time to send as much as system buffers hold; the test does not wait for bytes that the replica does not read.
pub(crate) const SAID_WITHIN: Duration = Duration::from_millis(100);

async fn knows_many_events() -> Cluster {
    let cluster = one_replica().await;
    announce(&cluster).await;
    cluster
}

/// The status of so many events has a few hundred kilobytes.
async fn announce(cluster: &Cluster) {
    for _ in 0..EVENTS {
        let order = json!({ "type": "Freeze", "source": "Platform", "vms": [0], "notice": "1h" });
        cluster.cloud.announce(order).await;
    }
    cluster.until(0, "aware of all events", |status| status.events.len() >= EVENTS).await;
}

pub(crate) fn questions(window: u32, question: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let count = if window == OPEN { QUESTIONS } else { LEFT_OPEN };
    (0..count).flat_map(|number| question(2 * number + 1)).collect()
}

/// Sends questions with three kinds of window: no bytes, one byte of each answer, all bytes, left unread.
pub(crate) async fn ask_in_vain(target: &Target, question: impl Fn(u32) -> Vec<u8>) -> Vec<Box<dyn Stream>> {
    let mut open = Vec::new();
    for window in [0, 1, OPEN].repeat(READERS) {
        let words = [PREFACE, &settings(window), &questions(window, &question)].concat();
        let mut stream = target.dial().await.unwrap();
        // The connection may be closed before everything is sent.
        let _ = timeout(SAID_WITHIN, stream.write_all(&words)).await;
        open.push(stream);
    }
    open
}

async fn stays_small(cluster: &Cluster) {
    let before = cluster.cloud.polls("db-0").await;
    cluster.until_true("ten more polls", async || cluster.cloud.polls("db-0").await >= before + 10).await;
    let peak = memory::peak(cluster, 0);
    println!("{:.1} MiB at the most", memory::mib(peak));
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
    cluster.until(0, "answering", |status| status.events.len() >= EVENTS).await;
}

#[tokio::test]
async fn what_operators_ask_and_do_not_read() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let cluster = knows_many_events().await;
    let door = socket(&cluster, "operator");
    let of = |call: &'static str| move |stream| whole_call(stream, call);
    let mut open = ask_in_vain(&door, of("/allclear.operator.v1.Operator/GetStatus")).await;
    open.extend(ask_in_vain(&door, of("/allclear.operator.v1.Operator/Watch")).await);
    stays_small(&cluster).await;
}

#[tokio::test]
async fn what_workloads_ask_and_do_not_read() {
    let _alone = alone().await;
    let cluster = knows_many_events().await;
    let door = socket(&cluster, "workloads");
    let of = |call: &'static str| move |stream| whole_call(stream, call);
    let mut open = ask_in_vain(&door, of("/allclear.workload.v1.Workloads/WatchEvents")).await;
    open.extend(ask_in_vain(&door, reflection("allclear.operator.v1.Operator")).await);
    stays_small(&cluster).await;
    // A caller that reads finds room as soon as callers that do not read are ended.
    let began = Instant::now();
    // The refusal may take the place of the answer or of its first message.
    let first = loop {
        let mut client = client(&cluster.door(0)).await;
        let first = async { client.watch_events(WatchEventsRequest {}).await?.into_inner().message().await };
        match first.await {
            Ok(first) => break first.unwrap(),
            Err(full) => assert!(full.code() == Code::ResourceExhausted && began.elapsed() < LIMIT, "{full}"),
        }
        sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(first.events.len(), EVENTS);
}

/// Over HTTP/2, which the status port does not serve, and over HTTP/1.1 with the maximum number of connections.
#[tokio::test]
async fn what_is_asked_of_the_status_port_and_not_read() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let cluster = knows_many_events().await;
    let door = status(&cluster);
    let mut open = ask_in_vain(&door, |stream| get(stream, "/v1/status")).await;
    for path in ["/v1/status", "/v1/watch", "/metrics", "/openapi.json"].repeat(32) {
        let asked = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").repeat(200);
        let mut stream = door.dial().await.unwrap();
        let _ = timeout(SAID_WITHIN, stream.write_all(asked.as_bytes())).await;
        open.push(stream);
    }
    stays_small(&cluster).await;
}

/// The description of a service, the longest answer of this listener.
pub(crate) fn reflection(service: &'static str) -> impl Fn(u32) -> Vec<u8> {
    move |stream| {
        // file_containing_symbol of ServerReflectionRequest.
        let mut request = vec![0x22, u8::try_from(service.len()).unwrap()];
        request.extend(service.as_bytes());
        let length = u32::try_from(request.len()).unwrap();
        let mut words = call(stream, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
        let asked = message(length, &request);
        words.extend(frame(DATA, 0, stream, &asked.repeat(7)));
        words.extend(frame(DATA, END_STREAM, stream, &asked));
        words
    }
}

#[tokio::test]
async fn what_is_asked_between_replicas_in_plain_text_and_not_read() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let cluster = knows_many_events().await;
    let door = between_replicas(&cluster);
    let _open = ask_in_vain(&door, reflection("allclear.operator.v1.Operator")).await;
    stays_small(&cluster).await;
}

/// A member's certificate gives no exemption.
#[tokio::test]
async fn what_a_member_asks_and_does_not_read() {
    crate::left_out::flood!();
    let _alone = alone().await;
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).start().await;
    announce(&cluster).await;
    let question = reflection("allclear.operator.v1.Operator");
    let mut open = Vec::new();
    for (turn, window) in [0, 1, OPEN].repeat(READERS).into_iter().enumerate() {
        // The number of connections of each certificate is limited.
        let shown = pki.of("ca", ["db-1", "db-2"][turn % 2]);
        let Ok(mut stream) = knock(&address(&cluster, 0), Some(shown)).await else { continue };
        let words = [settings(window), questions(window, &question)].concat();
        let _ = timeout(SAID_WITHIN, stream.write_all(&words)).await;
        open.push(stream);
    }
    assert!(open.len() > READERS, "{} were let in", open.len());
    stays_small(&cluster).await;
    let led = cluster.until(0, "led", |status| status.quorum && status.leader.is_some()).await;
    assert!(led.replicas.iter().all(|replica| replica.reachable), "a replica was lost");
}
