//! What other replicas' consensus asks of this one: decode, check whom it is for, hand to openraft, encode.

use std::time::Duration;

use bytes::BytesMut;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};
use tonic::{Request, Response, Status, Streaming};

use super::codec::{self, Malformed, pb_log_id, pb_vote};
use super::node::Consensus;
use super::options::MAX_SNAPSHOT_BYTES;
use super::types::{Snapshot, Types};
use crate::wire::pb::allclear::raft::v1 as pb;
use pb::raft_server::Raft;

/// A sender that stops in the middle of a snapshot is given up after this long.
const PIECE_WITHIN: Duration = Duration::from_secs(10);

/// Serves `allclear.raft.v1`.
pub(crate) struct RaftService(pub(crate) Consensus);

impl From<Malformed> for Status {
    fn from(error: Malformed) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

/// To its peers a stopped replica is as good as gone.
fn stopped(error: impl std::fmt::Display) -> Status {
    Status::unavailable(format!("this replica has stopped: {error}"))
}

#[tonic::async_trait]
impl Raft for RaftService {
    async fn append(&self, request: Request<pb::AppendRequest>) -> Result<Response<pb::AppendResponse>, Status> {
        use pb::append_response::Outcome;
        let (_, extensions, request) = request.into_parts();
        self.0.admit(request.to.as_ref())?;
        self.0.is_from_node(&extensions, request.vote.as_ref())?;
        let rpc = AppendEntriesRequest {
            vote: codec::vote(request.vote)?,
            prev_log_id: request.previous.map(codec::log_id),
            entries: request.entries.into_iter().map(codec::entry).collect::<Result<_, _>>()?,
            leader_commit: request.committed.map(codec::log_id),
        };
        in_a_row(&rpc)?;
        let outcome = match self.0.raft.append_entries(rpc).await.map_err(stopped)? {
            AppendEntriesResponse::Success | AppendEntriesResponse::PartialSuccess(_) => {
                Outcome::Accepted(pb::Accepted {})
            }
            AppendEntriesResponse::Conflict => Outcome::Conflict(pb::Conflict {}),
            AppendEntriesResponse::HigherVote(vote) => Outcome::Higher(pb_vote(&vote)),
        };
        if !matches!(outcome, Outcome::Higher(_)) {
            self.0.heard_leader();
        }
        Ok(Response::new(pb::AppendResponse { outcome: Some(outcome) }))
    }

    async fn vote(&self, request: Request<pb::VoteRequest>) -> Result<Response<pb::VoteResponse>, Status> {
        let rpc = self.vote_request(request)?;
        Ok(vote_response(&self.0.raft.vote(rpc).await.map_err(stopped)?))
    }

    async fn pre_vote(&self, request: Request<pb::VoteRequest>) -> Result<Response<pb::VoteResponse>, Status> {
        let rpc = self.vote_request(request)?;
        Ok(vote_response(&self.0.raft.pre_vote(rpc).await.map_err(stopped)?))
    }

    async fn install(
        &self,
        request: Request<Streaming<pb::InstallRequest>>,
    ) -> Result<Response<pb::InstallResponse>, Status> {
        use pb::install_request::Part;
        let (_, extensions, mut parts) = request.into_parts();
        let Some(Part::Head(head)) = next_part(&mut parts).await? else {
            return Err(Malformed("the snapshot has no head").into());
        };
        self.0.admit(head.to.as_ref())?;
        self.0.is_from_node(&extensions, head.vote.as_ref())?;
        let size = usize::try_from(head.size).unwrap_or(usize::MAX);
        if size > MAX_SNAPSHOT_BYTES {
            return Err(Malformed("the snapshot is too large").into());
        }
        let mut state = BytesMut::new();
        while let Some(part) = next_part(&mut parts).await? {
            let Part::Piece(piece) = part else { return Err(Malformed("the snapshot has two heads").into()) };
            if state.len() + piece.len() > size {
                return Err(Malformed("the snapshot is longer than its head said").into());
            }
            state.extend_from_slice(&piece);
        }
        if state.len() != size {
            return Err(Malformed("the snapshot is shorter than its head said").into());
        }
        let vote = codec::vote(head.vote)?;
        let meta = codec::snapshot_meta(head.snapshot.unwrap_or_default())?;
        let snapshot = Snapshot { meta, snapshot: state.freeze() };
        let response = self.0.raft.install_full_snapshot(vote, snapshot).await.map_err(stopped)?;
        self.0.heard_leader();
        Ok(Response::new(pb::InstallResponse { vote: Some(pb_vote(&response.vote)) }))
    }

    async fn transfer_leader(
        &self,
        request: Request<pb::TransferLeaderRequest>,
    ) -> Result<Response<pb::TransferLeaderResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        self.0.admit(request.to.as_ref())?;
        self.0.is_from_node(&extensions, request.from.as_ref())?;
        let last = request.last.map(codec::log_id);
        let rpc = TransferLeaderRequest::new(codec::vote(request.from)?, request.successor, last);
        let answer = self.0.raft.handle_transfer_leader(rpc).await.map_err(stopped)?;
        answer.map_err(|refused| Status::aborted(refused.to_string()))?;
        Ok(Response::new(pb::TransferLeaderResponse {}))
    }
}

impl RaftService {
    fn vote_request(&self, request: Request<pb::VoteRequest>) -> Result<VoteRequest<Types>, Status> {
        let (_, extensions, request) = request.into_parts();
        self.0.admit(request.to.as_ref())?;
        self.0.is_from_node(&extensions, request.vote.as_ref())?;
        let mut rpc = VoteRequest::new(codec::vote(request.vote)?, request.last.map(codec::log_id));
        rpc.leadership_transfer = request.leadership_transfer;
        Ok(rpc)
    }
}

fn vote_response(response: &VoteResponse<Types>) -> Response<pb::VoteResponse> {
    Response::new(pb::VoteResponse {
        vote: Some(pb_vote(&response.vote)),
        last: response.last_log_id.as_ref().map(pb_log_id),
        granted: response.vote_granted,
    })
}

/// openraft takes it for granted that entries follow each other and the previous position.
fn in_a_row(rpc: &AppendEntriesRequest<Types>) -> Result<(), Malformed> {
    let mut next = rpc.prev_log_id.map_or(0, |id| id.index().saturating_add(1));
    for entry in &rpc.entries {
        if entry.log_id.index() != next {
            return Err(Malformed("the entries do not follow each other"));
        }
        next = next.saturating_add(1);
    }
    Ok(())
}

async fn next_part(parts: &mut Streaming<pb::InstallRequest>) -> Result<Option<pb::install_request::Part>, Status> {
    let late = |_| Status::deadline_exceeded("the next piece of the snapshot did not come in time");
    let Some(request) = tokio::time::timeout(PIECE_WITHIN, parts.message()).await.map_err(late)?? else {
        return Ok(None);
    };
    request.part.map(Some).ok_or_else(|| Malformed("a part of the snapshot is empty").into())
}
