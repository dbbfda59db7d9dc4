//! What replicas do is the same with certificates.

use allclear::tls::Refusal;
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
        // Beside this test's own plain text, and handshakes that a loaded machine took too long for.
        for reason in Refusal::WORDS.into_iter().filter(|reason| !["plain_text", "unfinished"].contains(reason)) {
            assert_eq!(refused(&cluster, place, reason).await, 0, "{reason} at replica {place}");
        }
    }
}

/// The same without certificates beside it: a test that never sees plain text answered would prove nothing.
#[tokio::test]
async fn a_replica_without_certificates_answers_plain_text() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    assert!(knock_in_plain_text(&address(&cluster, 0)).await);
}

#[allow(clippy::cast_precision_loss, reason = "to the second is enough")]
fn now() -> f64 {
    allclear::replica::clock::now().0 as f64 / 1_000.0
}
