//! A replica with a good certificate is refused if the replica claims another name or is no longer a member.

use std::sync::Arc;
use std::time::{Duration, Instant};

use allclear::grpc::{Prober, visit};
use allclear::net::dial::DialTarget;
use allclear::net::tls::{self, Credentials};
use allclear::wire::pb::allclear::cluster::v1::consensus_client::ConsensusClient;
use allclear::wire::pb::allclear::cluster::v1::contact_client::ContactClient;
use allclear::wire::pb::allclear::cluster::v1::{self as cluster_v1, AskRequest, ChangeRequest, ProposeRequest};
use allclear::wire::pb::allclear::raft::v1::raft_client::RaftClient;
use allclear::wire::pb::allclear::raft::v1::{AppendRequest, Destination, LogId, Vote, VoteRequest};
use tokio::time::sleep;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::cluster::Cluster;
use super::pki::{CLUSTER, Pki, address, credentials, refused, refused_more};

const WITHIN: Duration = Duration::from_secs(30);

/// Connects to a replica with the identity of these credentials. A busy machine may not answer the first attempts in time.
pub(crate) async fn dial(replica: &str, address: &str, shown: &Arc<Credentials>) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let channel = tls::dial(&endpoint, shown, replica, &DialTarget::to(address));
    let began = Instant::now();
    loop {
        match ConsensusClient::new(channel.clone()).greet(greeting()).await {
            Err(status) if status.code() == Code::Unavailable => {
                assert!(began.elapsed() < WITHIN, "{status:?}");
                sleep(Duration::from_millis(50)).await;
            }
            Ok(_) | Err(_) => return channel,
        }
    }
}

fn denied<T: std::fmt::Debug>(answer: Result<T, Status>, why: &str) {
    let status = answer.expect_err(why);
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert!(status.message().contains(why), "{why}: {status:?}");
}

pub(crate) struct Met {
    pub(crate) to: Option<Destination>,
    pub(crate) nodes: Vec<(String, u64)>,
}

/// A greeting of the second replica.
pub(crate) fn greeting() -> cluster_v1::GreetRequest {
    let greeting = cluster_v1::Greeting { cluster: CLUSTER.into(), replica: "db-1".into(), ..Default::default() };
    cluster_v1::GreetRequest { greeting: Some(greeting) }
}

/// The first replica's identity and the members, as sent to the second replica.
pub(crate) async fn greet(address: &str, shown: &Arc<Credentials>) -> Met {
    let answer = ConsensusClient::new(dial("db-0", address, shown).await).greet(greeting()).await.unwrap().into_inner();
    let members = answer.membership.unwrap().members.into_iter();
    Met {
        to: Some(Destination { cluster: CLUSTER.into(), node: answer.greeting.unwrap().node }),
        nodes: members.map(|member| (member.replica, member.node)).collect(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_cannot_speak_for_another_and_one_that_does_not_belong_here_for_nobody() {
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).start().await;
    let address = address(&cluster, 0);
    let (second, stranger) = (credentials(&pki, "db-1"), credentials(&pki, "db-9"));
    let met = greet(&address, &second).await;
    let of_second = dial("db-0", &address, &second).await;
    let node_of = |name: &str| met.nodes.iter().find(|(replica, _)| replica == name).unwrap().1;

    let visitor = Prober { cluster: CLUSTER, replica: "db-2", tls: Some(&second) };
    let why = visit(&visitor, "db-0", &address, WITHIN).await.unwrap_err();
    assert!(why.contains("is not for db-2: the certificate names allclear://tests/replica/db-1"), "{why}");
    let propose = ProposeRequest { to: met.to.clone(), by: "db-2".into(), ..Default::default() };
    denied(ConsensusClient::new(of_second.clone()).propose(propose).await, "not for db-2");
    let ask = AskRequest { cluster: CLUSTER.into(), replica: "db-2".into() };
    denied(ContactClient::new(of_second.clone()).ask(ask).await, "not for db-2");
    let votes = Some(Vote { term: 1_000, node: node_of("db-2"), committed: true });
    let vote = VoteRequest {
        to: met.to.clone(),
        vote: votes,
        last: Some(LogId { term: 1_000, index: 1_000 }),
        leadership_transfer: true,
    };
    denied(RaftClient::new(of_second.clone()).vote(vote.clone()).await, "not for db-2");
    denied(RaftClient::new(of_second.clone()).pre_vote(vote).await, "not for db-2");
    let append = AppendRequest { to: met.to.clone(), vote: votes, ..Default::default() };
    denied(RaftClient::new(of_second.clone()).append(append).await, "not for db-2");
    assert_eq!(refused(&cluster, 0, "wrong_name").await, 6);

    let of_stranger = dial("db-0", &address, &stranger).await;
    // A certificate issued for this cluster, of a replica neither configured nor a member: a removed replica, say.
    let unknown = Some(Vote { term: 1_000, node: 42, committed: true });
    let append = AppendRequest { to: met.to.clone(), vote: unknown, ..Default::default() };
    denied(RaftClient::new(of_stranger.clone()).append(append).await, "neither configured here nor a member");
    let add = cluster_v1::AddMember { replica: "db-9".into(), address: "127.0.0.1:1".into() };
    let change = cluster_v1::change_request::Change::Add(add);
    let change = ChangeRequest { to: met.to.clone(), by: "db-9".into(), change: Some(change), ..Default::default() };
    let answer = ConsensusClient::new(of_stranger.clone()).change(change).await.unwrap().into_inner();
    let Some(cluster_v1::change_response::Outcome::Refused(refusal)) = answer.outcome else { panic!("{answer:?}") };
    assert!(refusal.reason.contains("a certificate does not replace membership"), "{refusal:?}");
    refused_more(&cluster, 0, "unknown_replica", 0).await;

    let status = cluster.until(0, "led", |status| status.quorum).await;
    assert!(status.term < 1_000, "no call of an impostor was heard: {status:#?}");
}
