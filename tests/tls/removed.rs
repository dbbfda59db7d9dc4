//! One stolen certificate does not end the cluster: neither the certificate of a removed replica still present in every
//! configuration, nor the certificate of a member with requests that no honest member sends.

use std::sync::Arc;

use allclear::net::tls::Credentials;
use allclear::wire::pb::allclear::cluster::v1::change_request::Change;
use allclear::wire::pb::allclear::cluster::v1::change_response::Outcome;
use allclear::wire::pb::allclear::cluster::v1::consensus_client::ConsensusClient;
use allclear::wire::pb::allclear::cluster::v1::contact_client::ContactClient;
use allclear::wire::pb::allclear::cluster::v1::{
    AddMember, AskRequest, BeatRequest, ChangeRequest, ConfirmRequest, ProposeRequest, RemoveMember, TransferLeader,
};
use allclear::wire::pb::allclear::operator::v1::Status;
use allclear::wire::pb::allclear::raft::v1 as raft;
use raft::raft_client::RaftClient;
use serde_json::json;
use tonic::Code;
use tonic::transport::Channel;

use super::cluster::Cluster;
use super::impostors::{Met, greet};
use super::pki::{CLUSTER, Pki, address, credentials, refused};
use super::workload::hook;

async fn dial(cluster: &Cluster, place: usize, shown: &Arc<Credentials>) -> Channel {
    super::impostors::dial(&format!("db-{place}"), &address(cluster, place), shown).await
}

async fn started(pki: &Pki) -> Cluster {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables(""));
    plan.workload("database", vec![hook("drain"), hook("restore")]).start().await
}

/// The cluster has a leader in a term of its own. A busy machine may elect another one; a stranger's terms are far ahead.
async fn has_not_leapt(cluster: &Cluster, before: u64) {
    let now = cluster.until(0, "led", |status| status.quorum).await.term;
    assert!((before..before + 100).contains(&now), "from {before} to {now}");
}

/// All requests of consensus, sent in the name of this node; the result of each.
async fn ask_all(
    channel: &Channel,
    to: Option<&raft::Destination>,
    vote: raft::Vote,
) -> Vec<Result<(), tonic::Status>> {
    let mut client = RaftClient::new(channel.clone());
    let (to, vote) = (to.cloned(), Some(vote));
    let last = Some(raft::LogId { term: 1, index: 1_000 });
    let unreadable = raft::Entry {
        id: Some(raft::LogId { term: 1, index: 1_001 }),
        payload: Some(raft::entry::Payload::Proposed(b"\xff".as_slice().into())),
    };
    let ask = raft::VoteRequest { to: to.clone(), vote, last, leadership_transfer: true };
    let append = raft::AppendRequest { to: to.clone(), vote, ..Default::default() };
    let write = raft::AppendRequest { previous: last, entries: vec![unreadable], ..append.clone() };
    let head = raft::InstallHead { to: to.clone(), vote, snapshot: None, size: 0 };
    let install = raft::InstallRequest { part: Some(raft::install_request::Part::Head(head)) };
    let transfer = raft::TransferLeaderRequest { to, from: vote, successor: 1, ..Default::default() };
    vec![
        client.vote(ask.clone()).await.map(drop),
        client.pre_vote(ask).await.map(drop),
        client.append(append).await.map(drop),
        client.append(write).await.map(drop),
        client.install(tokio_stream::iter([install])).await.map(drop),
        client.transfer_leader(transfer).await.map(drop),
    ]
}

/// An event runs to its end, approved once.
async fn takes_an_event_through(cluster: &Cluster, place: usize) {
    let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.until_stage(place, &event, "started").await;
    cluster.cloud.finish(&event).await;
    let closed = cluster.until_stage(place, &event, "closed").await;
    assert_eq!((closed.approvals.len(), cluster.cloud.posts().await.len()), (1, 1), "{closed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_replicas_certificate_ends_nothing_though_every_configuration_names_it() {
    crate::left_out::long!();
    let pki = Pki::new();
    let mut cluster = started(&pki).await;
    let (thief, member) = (credentials(&pki, "db-2"), credentials(&pki, "db-1"));
    let before = greet(&address(&cluster, 0), &member).await;
    let own = before.nodes.iter().find(|(name, _)| name == "db-2").unwrap().1;
    cluster.stop(2);
    cluster.until_true("db-2 is removed", async || cluster.says(0, &["member", "remove", "db-2"]).0 == 0).await;
    let is_known = |status: &Status| status.quorum && status.replicas.iter().all(|it| it.name != "db-2" || !it.voter);
    let led = cluster.until(0, "led without it", is_known).await;
    cluster.until(1, "led without it", is_known).await;

    for place in 0..2 {
        let channel = dial(&cluster, place, &thief).await;
        let to = to(&cluster, place, &member).await;
        let counted = refused(&cluster, place, "no_member").await;
        for node in [own, 42] {
            for term in [led.term, led.term + 1_000, u64::MAX] {
                for answer in ask_all(&channel, to.as_ref(), raft::Vote { term, node, committed: true }).await {
                    let status = answer.unwrap_err();
                    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
                    assert!(status.message().contains("not a member of the cluster"), "{status}");
                }
            }
        }
        assert!(refused(&cluster, place, "no_member").await >= counted + 36);

        let mut consensus = ConsensusClient::new(channel.clone());
        let by = || "db-2".to_owned();
        let confirm = ConfirmRequest { to: to.clone(), within_ms: 100 };
        assert_eq!(consensus.confirm(confirm).await.unwrap_err().code(), Code::PermissionDenied);
        let propose = ProposeRequest { to: to.clone(), by: by(), ..Default::default() };
        assert_eq!(consensus.propose(propose).await.unwrap_err().code(), Code::FailedPrecondition);
        for change in [
            Change::Add(AddMember { replica: by(), address: "127.0.0.1:1".into() }),
            Change::Remove(RemoveMember { replica: "db-1".into() }),
            Change::Transfer(TransferLeader { replica: None }),
        ] {
            let change = ChangeRequest { to: to.clone(), by: by(), change: Some(change), ..Default::default() };
            let answer = consensus.change(change).await.unwrap().into_inner();
            let Some(Outcome::Refused(refusal)) = answer.outcome else { panic!("{answer:?}") };
            assert!(refusal.reason.contains("a certificate does not replace membership"), "{refusal:?}");
        }
        let mut contact = ContactClient::new(channel);
        let beat = BeatRequest { cluster: CLUSTER.into(), replica: by(), ..Default::default() };
        assert_eq!(contact.beat(beat).await.unwrap_err().code(), Code::PermissionDenied);
        let ask = AskRequest { cluster: CLUSTER.into(), replica: by() };
        assert_eq!(contact.ask(ask).await.unwrap_err().code(), Code::PermissionDenied);
    }
    has_not_leapt(&cluster, led.term).await;

    // Nor does an empty disk make db-2 a new member.
    cluster.lose_disk(2);
    cluster.start(2);
    let is_told = |status: &Status| {
        let why = status.outside_because.as_deref().unwrap_or_default();
        why.contains("db-2 was removed by an operator; add the replica again with `allclear member add db-2")
    };
    cluster.until(2, "told that it was removed", is_told).await;
    takes_an_event_through(&cluster, 0).await;
    let nodes = greet(&address(&cluster, 0), &member).await.nodes;
    assert_eq!(nodes.len(), 2, "{nodes:?}");

    let there = address(&cluster, 2);
    let adds = async || cluster.says(0, &["member", "add", "db-2", &there]).0 == 0;
    cluster.until_true("an operator brings it back", adds).await;
    cluster.until(2, "a member", |status| status.outside_because.is_none() && status.quorum).await;
}

async fn to(cluster: &Cluster, place: usize, shown: &Arc<Credentials>) -> Option<raft::Destination> {
    let name = format!("db-{place}");
    let Met { nodes, .. } = greet(&address(cluster, 0), shown).await;
    let node = nodes.iter().find(|(replica, _)| *replica == name).unwrap().1;
    Some(raft::Destination { cluster: CLUSTER.into(), node })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_members_certificate_makes_no_term_leap_and_writes_nothing_that_cannot_be_read() {
    let pki = Pki::new();
    let cluster = started(&pki).await;
    let thief = credentials(&pki, "db-2");
    let member = credentials(&pki, "db-1");
    let led = cluster.until(0, "led", |status| status.quorum).await;
    let nodes = greet(&address(&cluster, 0), &member).await.nodes;
    let node = nodes.iter().find(|(name, _)| name == "db-2").unwrap().1;
    for place in 0..2 {
        let (channel, to) = (dial(&cluster, place, &thief).await, to(&cluster, place, &member).await);
        for term in [1 << 30, u64::MAX] {
            for answer in ask_all(&channel, to.as_ref(), raft::Vote { term, node, committed: true }).await {
                assert_eq!(answer.unwrap_err().code(), Code::OutOfRange);
            }
        }
        let unreadable = raft::Entry {
            id: Some(raft::LogId { term: led.term, index: 1 }),
            payload: Some(raft::entry::Payload::Proposed(b"\xff".as_slice().into())),
        };
        let vote = Some(raft::Vote { term: led.term + 1_000, node, committed: true });
        let previous = Some(raft::LogId { term: 0, index: 0 });
        let append = raft::AppendRequest { to, vote, previous, entries: vec![unreadable], ..Default::default() };
        let status = RaftClient::new(channel).append(append).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{status}");
    }
    has_not_leapt(&cluster, led.term).await;
    takes_an_event_through(&cluster, 0).await;
}
