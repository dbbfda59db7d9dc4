//! Certificates and authorities change while replicas run, without effect on any peer except peers no longer trusted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use allclear::wire::pb::allclear::cluster::v1::consensus_client::ConsensusClient;
use allclear::wire::pb::allclear::operator::v1::Warning;

use super::cluster::Cluster;
use super::impostors::{dial, greeting};
use super::knock::knock;
use super::pki::{Pki, address, credentials, refused_more};

const ALL: [&str; 3] = ["db-0", "db-1", "db-2"];
/// Every connection is reopened all the time, so every fault in reopening shows.
const SHORT: &str = "max_connection_age = \"1s\"";

fn taken_over(log: &str) -> usize {
    log.lines().filter(|line| line.contains("new certificates loaded")).count()
}

async fn until_taken_over(cluster: &Cluster, times: usize) {
    for place in 0..3 {
        let what = format!("new certificates at replica {place}, {times} times");
        cluster.until_true(&what, async || taken_over(&cluster.log(place)) >= times).await;
    }
}

/// Requests decisions again and again, from each replica in turn, until `stop` is set; every request has to succeed.
async fn decide(cluster: &Cluster, stop: &AtomicBool, decided: &AtomicUsize) {
    for place in (0..3).cycle() {
        for arguments in [&["pause", "--until", "1h", "--reason", "load"][..], &["resume", "--reason", "load"]] {
            let (code, _, said) = tokio::task::block_in_place(|| cluster.says(place, arguments));
            assert_eq!(code, 0, "{arguments:?} of replica {place}: {said}");
            decided.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_is_replaced_under_load_and_nothing_is_lost_but_the_trust_in_the_old_one() {
    let pki = Pki::new();
    let cluster = Cluster::of(&ALL).tables(pki.tables(SHORT)).keeps_its_leader().start().await;
    let before = cluster.until(0, "led", |status| status.quorum && status.leader.is_some()).await;
    let address = address(&cluster, 0);
    // The connection is in constant use, so only its age ends the connection.
    let opened_before = ConsensusClient::new(dial("db-0", &address, &credentials(&pki, "db-1")).await);
    let is_answered = async || opened_before.clone().greet(greeting()).await.is_ok();
    assert!(is_answered().await);
    let (stop, decided) = (AtomicBool::new(false), AtomicUsize::new(0));
    let more = async |than: usize| {
        cluster.until_true("more is decided", async || decided.load(Ordering::Relaxed) >= than + 4).await;
    };
    let replacing = async {
        pki.authority("new");
        for vm in ALL {
            pki.trust(vm, &["ca", "new"]);
        }
        until_taken_over(&cluster, 1).await;
        more(decided.load(Ordering::Relaxed)).await;
        for vm in ALL {
            pki.renew("new", vm);
        }
        until_taken_over(&cluster, 2).await;
        more(decided.load(Ordering::Relaxed)).await;
        for vm in ALL {
            pki.trust(vm, &["new"]);
        }
        until_taken_over(&cluster, 3).await;
        more(decided.load(Ordering::Relaxed)).await;
        cluster.until_true("the old connection has ended", async || !is_answered().await).await;
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(decide(&cluster, &stop, &decided), replacing);
    let after = cluster.until(0, "led", |status| status.quorum).await;
    assert_eq!((after.term, after.leader), (before.term, before.leader), "leadership has changed");
    for place in 0..3 {
        // A busy machine answers late; no certificate makes a replica late.
        let is_late = |line: &str| ["\"timeout after", "no answer within"].iter().any(|words| line.contains(words));
        let is_refusal = |line: &&str| line.contains("replica unreachable") && !is_late(line);
        assert_eq!(cluster.log(place).lines().find(is_refusal), None);
    }
    assert!(knock(&address, Some(pki.of("ca", "db-1"))).await.is_err(), "the old authority is still trusted");
    refused_more(&cluster, 0, "unknown_authority", 0).await;
    assert!(knock(&address, Some(pki.of("new", "db-1"))).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_files_that_would_not_work_are_told_of_and_not_taken_over() {
    crate::left_out::long!();
    let pki = Pki::new();
    let cluster = Cluster::of(&ALL).tables(pki.tables(SHORT)).keeps_its_leader().start().await;
    let before = cluster.until(0, "led", |status| status.quorum).await;
    pki.issue("ca", "db-1");
    let of_another = std::fs::read(pki.path("ca/db-1/node.pem")).unwrap();
    let spoilt = [
        ("node.pem", of_another, "is not for db-0"),
        ("node.pem", b"nothing".to_vec(), "holds no certificate"),
        ("ca.pem", std::fs::read(pki.path("ca/ca.key")).unwrap(), "holds no certificate"),
        ("node.key", std::fs::read(pki.path("ca/ca.key")).unwrap(), "is not the key of the certificate"),
    ];
    for (file, bytes, why) in spoilt {
        let good = std::fs::read(pki.path("db-0").join(file)).unwrap();
        pki.replace("db-0", file, &bytes);
        let is_told =
            |it: &Warning| it.text.contains("this replica uses its previous certificates") && it.text.contains(why);
        cluster.until(0, why, |status| status.quorum && status.warnings.iter().any(is_told)).await;
        pki.replace("db-0", file, &good);
        cluster.until(0, "without a warning", |status| status.warnings.is_empty()).await;
    }
    let after = cluster.until(0, "led", |status| status.quorum).await;
    assert_eq!((after.term, after.leader), (before.term, before.leader), "leadership has changed");
    assert_eq!(taken_over(&cluster.log(0)), 0, "what was good all the time is no news");
}
