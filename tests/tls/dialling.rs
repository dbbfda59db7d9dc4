//! A replica sends nothing to a server with a wrong certificate at a peer's address, counts the refusal, and `doctor`
//! shows the reason.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::Value;

use super::cluster::Cluster;
use super::knock::Stranger;
use super::pki::{Pki, Shown, Wanted, address, refused, refused_more, uri};

/// Possible servers at the address of db-1: the label of the reason for the refusal, and the text for operators.
fn strangers(pki: &Pki) -> Vec<(Shown, &'static str, &'static str)> {
    let good = || Wanted::naming(&uri("tests", "db-1"));
    let of_other = Wanted { dns: vec!["db-1".into()], ..Wanted::naming(&uri("others", "db-1")) };
    vec![
        (pki.of("ca", "db-2"), "wrong_name", "is not for db-1: the certificate names allclear://tests/replica/db-2"),
        (
            pki.signed(&of_other),
            "other_cluster",
            "for another cluster: the certificate names allclear://others/replica/db-1",
        ),
        (good().signed_by_a_stranger(), "unknown_authority", "by an authority that is not in cluster.tls.ca"),
        (pki.signed(&Wanted { years: (2020, 2021), ..good() }), "expired", "the certificate of the peer has expired"),
        (pki.signed(&Wanted { years: (2090, 2091), ..good() }), "not_yet_valid", "is not valid yet"),
    ]
}

/// Findings of `doctor` about the peers of the first replica.
fn doctor(cluster: &Cluster) -> Vec<String> {
    let output = cluster.asks(0, "doctor", &["--json"]).wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    findings.filter(|it| it["check"] == "peer").map(|it| it["what"].as_str().unwrap().to_owned()).collect()
}

fn says(said: &[String], what: &str) {
    assert!(said.iter().any(|line| line.contains("db-1 does not answer") && line.contains(what)), "{what}: {said:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_stands_at_a_replicas_address_is_not_talked_to_and_doctor_says_why() {
    let pki = Pki::new();
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).cold().await;
    cluster.start(0);
    let address = address(&cluster, 1);
    cluster.until(0, "there", |_| true).await;
    for (shown, reason, told) in strangers(&pki) {
        let before = refused(&cluster, 0, reason).await;
        let _stranger = Stranger::at(&address, shown).await;
        refused_more(&cluster, 0, reason, before).await;
        says(&doctor(&cluster), told);
        let why = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains(told));
        cluster.until(0, told, why).await;
    }
    let before = refused(&cluster, 0, "plain_text").await;
    let _stranger = Stranger::in_plain_text(&address).await;
    refused_more(&cluster, 0, "plain_text", before).await;
    says(&doctor(&cluster), "the peer does not use TLS; check that the peer has [cluster.tls]");
}

/// The peer verifies last, and the peer's verdict is shown to operators of this replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_whose_certificate_is_refused_by_another_is_told_so() {
    let pki = Pki::new();
    // db-0 trusts the other replicas, but the other replicas do not know the authority of db-0's certificate.
    pki.authority("elsewhere");
    pki.issue("elsewhere", "db-0");
    pki.install("elsewhere", "db-0");
    pki.trust("db-0", &["ca", "elsewhere"]);
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).cold().await;
    cluster.start(0);
    cluster.start(1);
    for place in [0, 1] {
        cluster.until(place, "there", |_| true).await;
    }
    refused_more(&cluster, 0, "by_peer", 0).await;
    refused_more(&cluster, 1, "unknown_authority", 0).await;
    says(&doctor(&cluster), "the peer refuses this replica's certificate: the peer does not know the authority");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_with_certificates_and_one_without_do_not_meet() {
    let pki = Pki::new();
    let insecure = vec![("ALLCLEAR__CLUSTER__INSECURE", "true".to_owned())];
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(vec![pki.table("db-0", "")]);
    let mut cluster = plan.environments(vec![Vec::new(), insecure.clone(), insecure]).cold().await;
    cluster.start(0);
    cluster.start(1);
    for place in [0, 1] {
        cluster.until(place, "there", |_| true).await;
    }
    // Both connect: one sends TLS to a plain port, the other plain text to a TLS port.
    refused_more(&cluster, 0, "plain_text", 3).await;
    says(&doctor(&cluster), "the peer does not use TLS; check that the peer has [cluster.tls]");
}
