//! Each listener alone: clients that keep to the rules are served beside clients that break the rules and are cut off.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::attacks::{Stream, Target};
use super::cluster::Cluster;
use super::dialled::client;
use super::flood::{Flood, of_plain_text};
use super::frames::{DATA, END_STREAM, RESET, beginning, call, frame, message, whole_call};
use super::memory;
use super::pki::address;
use crate::machine_share::alone;

/// Only a failing test waits this long.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);
pub(crate) const MEMORY: u64 = if cfg!(debug_assertions) { 160 << 20 } else { 64 << 20 };

pub(crate) async fn one_replica() -> Cluster {
    // Plain text has the listener's own limits; the limits of TLS have a suite of their own.
    Cluster::of(&["db-0"]).also("cluster.insecure", "true").start().await
}

pub(crate) fn socket(cluster: &Cluster, name: &str) -> Target {
    Target::Socket(cluster.configuration(0).with_extension(name))
}

pub(crate) fn status(cluster: &Cluster) -> Target {
    Target::Port(cluster.replicas[0].page.trim_start_matches("http://").parse().unwrap())
}

pub(crate) fn between_replicas(cluster: &Cluster) -> Target {
    Target::Port(address(cluster, 0).parse().unwrap())
}

/// Waits until the replica has closed the connection; returns the bytes received before.
pub(crate) async fn ended(stream: &mut Box<dyn Stream>) -> Vec<u8> {
    let mut said = Vec::new();
    match timeout(LIMIT, stream.read_to_end(&mut said)).await.expect("it is left open") {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    said
}

#[tokio::test]
async fn who_says_nothing_or_never_ends_the_first_word_is_ended_at_every_door() {
    let cluster = one_replica().await;
    let doors = [
        (socket(&cluster, "operator"), &b"PRI * HTTP/2.0"[..]),
        (socket(&cluster, "workloads"), b"PRI * HTTP/2.0"),
        (between_replicas(&cluster), b"PRI * HTTP/2.0"),
        (status(&cluster), b"GET /v1/status HTTP/1.1\r\nx: y"),
    ];
    let mut open = Vec::new();
    for (door, words) in &doors {
        for words in [&b""[..], words] {
            let mut stream = door.dial().await.unwrap();
            stream.write_all(words).await.unwrap();
            open.push(stream);
        }
    }
    for mut stream in open {
        ended(&mut stream).await;
    }
}

#[tokio::test]
async fn a_gibibyte_is_refused_when_it_is_announced_at_every_door() {
    let cluster = one_replica().await;
    let doors = [
        (socket(&cluster, "operator"), "/allclear.operator.v1.Operator/Hold"),
        (socket(&cluster, "operator"), "/grpc.health.v1.Health/Check"),
        (socket(&cluster, "operator"), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
        (socket(&cluster, "workloads"), "/allclear.workload.v1.Workloads/Register"),
        (socket(&cluster, "workloads"), "/allclear.workload.v1.Workloads/Session"),
        (between_replicas(&cluster), "/allclear.raft.v1.Raft/Append"),
        (between_replicas(&cluster), "/allclear.cluster.v1.Contact/Beat"),
    ];
    for (door, path) in doors {
        let mut stream = door.dial().await.unwrap();
        let mut bytes = beginning();
        bytes.extend(call(1, path));
        bytes.extend(frame(DATA, 0, 1, &message(1 << 30, &[0; 1024])));
        stream.write_all(&bytes).await.unwrap();
        // The answer's content is compressed; the end of the answer before the end of the message is visible.
        timeout(LIMIT, is_over(&mut stream)).await.unwrap_or_else(|_| panic!("{path} waits for the message"));
    }
    let mut stream = status(&cluster).dial().await.unwrap();
    let head = "POST /v1/status HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1073741824\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(LIMIT, stream.read_exact(&mut answer)).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 405");
    let peak = memory::peak(&cluster, 0);
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
}

/// Waits until the first call was answered or reset.
async fn is_over(stream: &mut Box<dyn Stream>) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.unwrap();
        let is_last = head[3] == RESET || (head[3] <= 1 && head[4] & END_STREAM != 0);
        if head[8] == 1 && is_last {
            return;
        }
    }
}

/// Sends requests without reading until the replica closes the connection, and returns the number of requests.
async fn asks_in_vain(door: Target, begins: Vec<u8>, question: impl Fn(u32) -> Vec<u8>) -> u32 {
    let mut stream = door.dial().await.unwrap();
    stream.write_all(&begins).await.unwrap();
    let mut asked = 0;
    let asking = async {
        while stream.write_all(&question(asked)).await.is_ok() {
            asked += 1;
        }
    };
    timeout(LIMIT, asking).await.expect("it is left open");
    asked
}

#[tokio::test]
async fn who_never_reads_is_soon_heard_no_more_and_then_ended() {
    let cluster = one_replica().await;
    let call = |stream: u32| whole_call(2 * stream + 1, "/allclear.operator.v1.Operator/GetStatus");
    let get = |_| b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();
    let (calls, gets) = tokio::join!(
        asks_in_vain(socket(&cluster, "operator"), beginning(), call),
        asks_in_vain(status(&cluster), Vec::new(), get),
    );
    // As many as system buffers hold; the number is bounded.
    assert!((1..100_000).contains(&calls) && (1..1_000_000).contains(&gets), "{calls} calls, {gets} requests");
    let peak = memory::peak(&cluster, 0);
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_a_port_in_plain_text_costs_little_memory() {
    let _alone = alone().await;
    let cluster = one_replica().await;
    let flood = Flood::of(of_plain_text(&between_replicas(&cluster)));
    flood.rises().await;
    let event = cluster.cloud.announce(serde_json::json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_stage(0, &event, "started").await;
    let peak = memory::peak(&cluster, 0);
    println!("{}at the most {:.1} MiB", flood.told(), memory::mib(peak));
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
}

#[tokio::test]
async fn a_workload_that_keeps_to_the_rules_is_served_beside_two_thousand_silent_ones() {
    let cluster = one_replica().await;
    let door = socket(&cluster, "workloads");
    let flood = Flood::of(vec![(door, super::attacks::Attack::Silence, super::flood::SILENT)]);
    flood.rises().await;
    for _ in 0..20 {
        let mut client = client(&cluster.door(0)).await;
        let hello = super::dialled::hello("database", Vec::new());
        let welcome = client.register(hello).await.unwrap().into_inner();
        assert_eq!(welcome.vm, "db-0");
    }
}
