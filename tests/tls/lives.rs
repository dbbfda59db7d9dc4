//! Replicas with certificates behave like replicas without certificates.

use allclear::net::tls::HandshakeError;
use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::json;

use super::cluster::Cluster;
use super::knock::knock_in_plain_text;
use super::pki::{Pki, address, refused};
use super::workload::hook;

#[tokio::test]
async fn three_replicas_with_certificates_take_an_event_through() {
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables(""));
    let cluster = plan.workload("database", vec![hook("drain")]).start().await;
    for place in 0..3 {
        assert!(!knock_in_plain_text(&address(&cluster, place)).await, "replica {place} answers plain text");
        let (_, metrics) = cluster.page(place, "/metrics").await;
        let end = metrics.lines().find_map(|it| it.strip_prefix("allclear_certificate_expiry_timestamp_seconds "));
        let days = (end.unwrap().parse::<f64>().unwrap() - now()) / 86_400.0;
        assert!((364.0..367.0).contains(&days), "{days}");
    }
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.until_stage(0, &event, "started").await;
    cluster.cloud.finish(&event).await;
    let closed = cluster.closed_everywhere(&event).await;
    assert_eq!(closed.approvals.len(), 1, "{closed:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    for place in 0..3 {
        // Except for this test's own plain text, and handshakes too slow on a loaded machine.
        for reason in HandshakeError::NAMES.into_iter().filter(|reason| !["plain_text", "unfinished"].contains(reason))
        {
            assert_eq!(refused(&cluster, place, reason).await, 0, "{reason} at replica {place}");
        }
    }
}

#[tokio::test]
async fn a_newcomer_is_brought_in_by_a_member_and_never_by_its_certificate_alone() {
    let pki = Pki::new();
    pki.issue("ca", "db-3");
    pki.install("ca", "db-3");
    let tables = pki.tables("").into_iter().chain([pki.table("db-3", "")]).collect();
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).newcomer("db-3").tables(tables).start().await;
    cluster.start(3);
    let address = address(&cluster, 3);
    let is_told = |status: &Status| {
        let why = status.outside_because.as_deref().unwrap_or_default();
        why.contains(&format!("allclear member add db-3 {address}"))
    };
    cluster.until(3, "told how to become a member", is_told).await;
    let (code, _, said) = cluster.says(3, &["member", "add", "db-3", &address]);
    assert!(code == 4 && said.contains("use a member instead"), "{code}: {said}");
    // Only a change of the leader may end the request, which an operator then repeats.
    let is_added = async || {
        let (code, _, said) = cluster.says(0, &["member", "add", "db-3", &address]);
        assert!(code == 0 || said.contains("leadership moved before the change ended"), "{code}: {said}");
        code == 0
    };
    cluster.until_true("the newcomer is added", is_added).await;
    let takes_part = |status: &Status| status.outside_because.is_none() && status.quorum;
    cluster.until(3, "a member", takes_part).await;
    let is_reached = |status: &Status| status.replicas.iter().any(|it| it.name == "db-3" && it.reachable);
    cluster.until(0, "reached by the newcomer's beats", is_reached).await;
}

#[tokio::test]
async fn a_cluster_of_one_opens_no_port_for_replicas_and_grows_once_it_has_certificates() {
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0"]).newcomer("db-1").tables(pki.tables(""));
    let mut cluster = plan.cold().await;
    let path = cluster.configuration(0);
    let whole = std::fs::read_to_string(&path).unwrap();
    let mut table: toml::Table = whole.parse().unwrap();
    for key in ["listen", "replicas", "tls"] {
        table["cluster"].as_table_mut().unwrap().remove(key).unwrap();
    }
    std::fs::write(&path, table.to_string()).unwrap();
    cluster.start(0);
    cluster.ready().await;
    assert_eq!(listening_ports(&cluster, 0), 1, "only the status is served over TCP");

    let there = address(&cluster, 1);
    let (code, _, said) = cluster.says(0, &["member", "add", "db-1", &there]);
    assert!(code == 4 && said.contains("needs `cluster.listen` and `[cluster.tls]`"), "{code}: {said}");

    cluster.stop(0);
    std::fs::write(&path, whole).unwrap();
    cluster.start(0);
    cluster.ready().await;
    assert_eq!(listening_ports(&cluster, 0), 2);
    cluster.start(1);
    cluster.until(1, "told how to become a member", |status| status.outside_because.is_some()).await;
    assert_eq!(cluster.says(0, &["member", "add", "db-1", &there]).1, "db-1 is a voter\n");
    cluster.until(1, "a member", |status| status.outside_because.is_none() && status.quorum).await;
}

/// The number of TCP ports on which a replica listens.
fn listening_ports(cluster: &Cluster, place: usize) -> usize {
    let process = format!("/proc/{}", cluster.pid(place).unwrap());
    let descriptors = std::fs::read_dir(format!("{process}/fd")).unwrap();
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    let own: Vec<_> = targets.map(|target| target.display().to_string()).collect();
    let sockets = ["tcp", "tcp6"].map(|kind| std::fs::read_to_string(format!("{process}/net/{kind}")).unwrap());
    let is_listening = |line: &&str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields[3] == "0A" && own.contains(&format!("socket:[{}]", fields[9]))
    };
    sockets.iter().flat_map(|sockets| sockets.lines().skip(1)).filter(is_listening).count()
}

/// The counterpart of the other tests: a probe that never sees plain text answered would prove nothing.
#[tokio::test]
async fn an_insecure_cluster_speaks_plain_text() {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).also("cluster.insecure", "true");
    let cluster = plan.start().await;
    assert!(knock_in_plain_text(&address(&cluster, 0)).await);
}

#[allow(clippy::cast_precision_loss, reason = "to the second is enough")]
fn now() -> f64 {
    allclear::replica::clock::now().0 as f64 / 1_000.0
}
