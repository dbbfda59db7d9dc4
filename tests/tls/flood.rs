//! Idle connections, many more than a replica waits for, delay no other connection.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use super::cluster::Cluster;
use super::pki::{Pki, address, refused_more};
use super::workload::hook;

/// Simultaneous connections to each replica.
const LORISES: usize = 300;

/// Holds an idle connection open, from an address of its own; when the connection ends, opens the next.
async fn keep_open(from: SocketAddr, to: SocketAddr) {
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        if socket.bind(from).is_ok()
            && let Ok(mut stream) = socket.connect(to).await
        {
            let _ = stream.read_u8().await;
        }
        // Connections that come back sooner are a load on the processors, not idle.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connections_cost_no_leader_and_an_event_goes_its_way() {
    let pki = Pki::new();
    // Connections between the replicas end all the time, so each replica needs handshakes beside the idle connections.
    // On a busy machine the idle connections delay every handshake, so a leader may miss its followers for some seconds.
    let plan = Cluster::of(&["db-0", "db-1", "db-2"])
        .tables(pki.tables("max_connection_age = \"1s\""))
        .also("cluster.heartbeat", "2s")
        .also("cluster.election_timeout", "6s")
        .also("cluster.takeover_after", "24s");
    let cluster = plan.workload("database", vec![hook("drain")]).start().await;
    let before = cluster.until(0, "led", |status| status.quorum && status.leader.is_some()).await;
    let mut lorises = JoinSet::new();
    for place in 0..3 {
        let to: SocketAddr = address(&cluster, place).parse().unwrap();
        for number in 0..LORISES {
            // Some connections come from one address, as from one careless client, and some from many addresses.
            let last = if number % 2 == 0 { 1 } else { 2 + number % 200 };
            lorises.spawn(keep_open(format!("127.0.7.{last}:0").parse().unwrap(), to));
        }
    }
    for place in 0..3 {
        refused_more(&cluster, place, "unfinished", u64::try_from(LORISES).unwrap()).await;
    }
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.until_stage(0, &event, "started").await;
    cluster.cloud.finish(&event).await;
    cluster.closed_everywhere(&event).await;
    lorises.shutdown().await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    // The event names a follower or the leader; in the second case leadership is transferred once, on purpose.
    let after = cluster.until(0, "led", |status| status.quorum && status.leader.is_some()).await;
    let handed_over = u64::from(before.leader.as_deref() == Some("db-1"));
    assert_eq!(after.term, before.term + handed_over, "leadership was lost");
    for place in 0..3 {
        let log = cluster.log(place);
        let told = log.lines().filter(|line| line.contains("handshake between replicas refused")).count();
        assert!(told < 200, "{told} lines about it");
    }
}
