//! The answer of a member is accepted only within the limits of an honest member.

use std::sync::Arc;
use std::time::Duration;

use openraft::network::RPCOption;
use openraft::raft::AppendEntriesRequest;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use super::super::environment::Environment;
use super::super::options::Options;
use super::super::options::{MAX_VOTERS, RaftTiming, SNAPSHOT_EVERY};
use super::*;
use pb::raft_server::{Raft, RaftServer};

/// Answers every call with a vote of this term.
struct Liar(u64);

impl Liar {
    fn vote(&self) -> pb::Vote {
        pb::Vote { term: self.0, node: 2, committed: false }
    }
}

#[tonic::async_trait]
impl Raft for Liar {
    async fn append(&self, _: Request<pb::AppendRequest>) -> Result<Response<pb::AppendResponse>, Status> {
        let outcome = Some(pb::append_response::Outcome::Higher(self.vote()));
        Ok(Response::new(pb::AppendResponse { outcome }))
    }

    async fn vote(&self, _: Request<pb::VoteRequest>) -> Result<Response<pb::VoteResponse>, Status> {
        Ok(Response::new(pb::VoteResponse { vote: Some(self.vote()), last: None, granted: false }))
    }

    async fn pre_vote(&self, request: Request<pb::VoteRequest>) -> Result<Response<pb::VoteResponse>, Status> {
        Raft::vote(self, request).await
    }

    async fn install(
        &self,
        _: Request<Streaming<pb::InstallRequest>>,
    ) -> Result<Response<pb::InstallResponse>, Status> {
        Ok(Response::new(pb::InstallResponse { vote: Some(self.vote()) }))
    }

    async fn transfer_leader(
        &self,
        _: Request<pb::TransferLeaderRequest>,
    ) -> Result<Response<pb::TransferLeaderResponse>, Status> {
        Err(Status::aborted("it says nothing"))
    }
}

/// A link from a replica of term 7 to such a member.
async fn link_to(liar: Liar) -> PeerLink {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(Server::builder().add_service(RaftServer::new(liar)).serve_with_incoming(incoming));
    let options = Options {
        cluster: "orders".into(),
        replica: "db-0".into(),
        replicas: vec![("db-0".into(), "127.0.0.1:1".into()), ("db-1".into(), address.clone())],
        max_voters: MAX_VOTERS,
        replace_after: Duration::from_mins(10),
        rejoin_after: Duration::from_mins(1),
        data_dir: std::path::PathBuf::new(),
        timing: RaftTiming::default(),
        snapshot_every: SNAPSHOT_EVERY,
        environment: Environment::default(),
        tls: None,
    };
    let term = OwnTerm::default();
    term.stored(7);
    let peers = Arc::new(Peers::new(&options).unwrap());
    let mut network = Network { cluster: "orders".into(), node: 1, peers, term };
    network.new_client(2, &RaftMember { replica: "db-1".into(), address, lineage: 0 }).await
}

#[tokio::test]
async fn a_term_in_an_answer_that_leaps_is_no_answer_and_an_honest_one_is() {
    let option = || RPCOption::new(Duration::from_secs(10));
    let own = || codec::vote(Some(pb::Vote { term: 7, node: 1, committed: true })).unwrap();
    let append = || AppendEntriesRequest { vote: own(), prev_log_id: None, entries: vec![], leader_commit: None };
    for (term, is_taken) in [(8, true), (1 << 30, false), (u64::MAX, false)] {
        let mut link = link_to(Liar(term)).await;
        let answers = [
            link.append_entries(append(), option()).await.map(drop),
            link.vote(VoteRequest::new(own(), None), option()).await.map(drop),
            link.pre_vote(VoteRequest::new(own(), None), option()).await.map(drop),
        ];
        for answer in answers {
            assert_eq!(answer.is_ok(), is_taken, "{answer:?}");
            assert!(
                is_taken || format!("{answer:?}").contains("db-1 answers with a vote that is not accepted"),
                "{answer:?}"
            );
        }
        let snapshot =
            Snapshot { meta: codec::snapshot_meta(pb::SnapshotHead::default()).unwrap(), snapshot: Bytes::new() };
        let answer = link.full_snapshot(own(), snapshot, std::future::pending(), option()).await;
        assert_eq!(answer.is_ok(), is_taken, "{answer:?}");
    }
}
