//! A client without the right certificate cannot use a replica, and the replica counts each attempt and logs the
//! reason.

use rcgen::ExtendedKeyUsagePurpose;

use super::cluster::Cluster;
use super::knock::{knock, knock_in_plain_text};
use super::pki::{Pki, Shown, Wanted, address, refused, refused_more, uri};

/// Every kind of stranger, with the label of the reason for the refusal.
fn strangers(pki: &Pki) -> Vec<(&'static str, Option<Shown>, &'static str)> {
    let good = || Wanted::naming(&uri("tests", "db-1"));
    let of_server = Wanted { usages: vec![ExtendedKeyUsagePurpose::ServerAuth], ..good() };
    let by_dns = Wanted { uris: Vec::new(), dns: vec!["db-1".into()], ..good() };
    let of_both = Wanted { dns: vec!["db-1".into()], ..Wanted::naming(&uri("others", "db-1")) };
    vec![
        ("no certificate", None, "no_certificate"),
        ("an authority that nobody knows", Some(good().signed_by_a_stranger()), "unknown_authority"),
        ("the end of its time", Some(pki.signed(&Wanted { years: (2020, 2021), ..good() })), "expired"),
        ("before its time", Some(pki.signed(&Wanted { years: (2090, 2091), ..good() })), "not_yet_valid"),
        ("another cluster under the same authority", Some(pki.signed(&of_both)), "other_cluster"),
        ("a DNS name alone", Some(pki.signed(&by_dns)), "unnamed"),
        ("a certificate for servers alone", Some(pki.signed(&of_server)), "other"),
    ]
}

#[tokio::test]
async fn whoever_shows_a_wrong_certificate_is_refused_counted_and_told() {
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0"]).tables(vec![pki.table("db-0", "")]).start().await;
    let address = address(&cluster, 0);
    let let_in = knock(&address, Some(pki.of("ca", "db-1"))).await;
    assert!(let_in.is_ok(), "a good certificate is taken: {let_in:?}");
    let let_in = knock(&address, Some(pki.signed(&Wanted::naming(&uri("tests", "db-1"))))).await;
    assert!(let_in.is_ok(), "also one that is made as the bad ones are: {let_in:?}");
    for (who, shown, reason) in strangers(&pki) {
        let before = refused(&cluster, 0, reason).await;
        let met = knock(&address, shown).await;
        assert!(met.is_err(), "{who} is let in");
        refused_more(&cluster, 0, reason, before).await;
        let log = cluster.log(0);
        let is_told = |line: &str| {
            line.contains("handshake between replicas refused") && line.contains(&format!("\"reason\":\"{reason}\""))
        };
        assert!(log.lines().any(is_told), "{who} is not told of as {reason}:\n{log}");
    }
    assert!(!knock_in_plain_text(&address).await, "plain text is answered");
    refused_more(&cluster, 0, "plain_text", 0).await;
}

#[tokio::test]
async fn one_certificate_leaves_places_to_others() {
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0"]).tables(vec![pki.table("db-0", "")]).start().await;
    let address = address(&cluster, 0);
    let mut let_in = Vec::new();
    for _ in 0..16 {
        let_in.push(knock(&address, Some(pki.of("ca", "db-1"))).await.unwrap());
    }
    let before = refused(&cluster, 0, "too_many").await;
    assert!(knock(&address, Some(pki.of("ca", "db-1"))).await.is_err(), "one more is let in");
    refused_more(&cluster, 0, "too_many", before).await;
    assert!(knock(&address, Some(pki.of("ca", "db-2"))).await.is_ok(), "another is not let in");
    drop(let_in);
    cluster.until_true("a place", async || knock(&address, Some(pki.of("ca", "db-1"))).await.is_ok()).await;
}

#[tokio::test]
async fn a_dns_name_is_enough_where_it_is_configured_and_never_for_another_cluster() {
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0"]).tables(vec![pki.table("db-0", "names = \"dns\"")]).start().await;
    let address = address(&cluster, 0);
    let by_dns = Wanted { uris: Vec::new(), dns: vec!["db-1".into()], ..Wanted::naming("") };
    assert!(knock(&address, Some(pki.signed(&by_dns))).await.is_ok());
    let of_both = Wanted { dns: vec!["db-1".into()], ..Wanted::naming(&uri("others", "db-1")) };
    assert!(knock(&address, Some(pki.signed(&of_both))).await.is_err());
    refused_more(&cluster, 0, "other_cluster", 0).await;
}
