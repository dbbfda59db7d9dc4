//! Calls over TCP: the port is for traffic between replicas; no caller can approve, hold or register anything.

use tonic::transport::Endpoint;

use super::calls::{Door, call};
use super::cluster::Cluster;
use super::pki::{Pki, address, credentials, refused as refused_for};
use super::somebody::{STRANGER, calls_of, every_call, every_call_as};

#[tokio::test(flavor = "multi_thread")]
async fn no_port_takes_what_operators_and_workloads_ask_for_at_their_sockets() {
    let cluster = Cluster::of(&["db-0"]).also("cluster.insecure", "true").start().await;
    let answers = every_call(&format!("http://{}", address(&cluster, 0))).await;
    let code = |path: &str| answers[path].as_ref().map_or("answered", |(code, _)| code.as_str());
    for path in calls_of(&[Door::Operator, Door::Workload]) {
        assert_eq!(code(&path), "Unimplemented", "{path}");
    }
    for path in calls_of(&[Door::Cluster]) {
        assert!(!["Unimplemented", "Unavailable"].contains(&code(&path)), "{path}: {answers:#?}");
    }
    let answers = every_call(&cluster.replicas[0].page).await;
    assert!(answers.values().all(Option::is_some), "the status port answers no call: {answers:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replicas_certificate_makes_nobody_an_operator_or_a_workload() {
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).start().await;
    let (address, shown) = (address(&cluster, 0), credentials(&pki, "db-1"));
    let channel = || {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        allclear::net::tls::dial(&endpoint, &shown, "db-0", &allclear::net::dial::DialTarget::to(&address))
    };
    let limit = std::time::Duration::from_secs(30);
    for path in calls_of(&[Door::Operator, Door::Workload]) {
        let refusal = call(channel(), &path, vec![Vec::new()], limit).await.expect("it is answered");
        assert_eq!(refusal.code(), tonic::Code::Unimplemented, "{path}: {refusal:?}");
    }
    let health = call(channel(), "/grpc.health.v1.Health/Check", vec![Vec::new()], limit).await;
    assert!(health.is_none(), "the same certificate is let in: {health:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_of_the_machine_has_no_certificate_and_cannot_speak_for_a_replica() {
    if !crate::left_out::is_root() {
        return;
    }
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0"]).tables(pki.tables("")).start().await;
    let answers = every_call_as(STRANGER, STRANGER, &format!("http://{}", address(&cluster, 0)));
    for (path, answer) in &answers {
        assert!(answer.as_ref().is_some_and(|(code, _)| code != "Unimplemented"), "{path}: {answer:?}");
    }
    assert!(refused_for(&cluster, 0, "plain_text").await >= u64::try_from(answers.len()).unwrap());
}
