//! The gRPC service for the Raft messages of other replicas: decodes a message, checks the sender, the receiver, the
//! term, and that the entries can be applied; then passes the message to openraft and encodes the answer.

use std::time::Duration;

use bytes::BytesMut;
use openraft::EntryPayload;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};
use tonic::{Request, Response, Status, Streaming};

use super::codec::{self, Malformed, pb_log_id, pb_vote};
use super::node::Consensus;
use super::options::MAX_SNAPSHOT_BYTES;
use super::state_machine::{NotUnderstood, StateMachine};
use super::types::{LogId, Proposed, RaftEntry, RaftVote, Snapshot, Types};
use crate::net::limits::LogLimiter;
use allclear_core::model::command::bounded;
use allclear_wire::pb::allclear::raft::v1 as pb;
use pb::raft_server::Raft;

/// A sender that stops in the middle of a snapshot is given up after this long.
const PIECE_WITHIN: Duration = Duration::from_secs(10);

/// Serves `allclear.raft.v1`.
pub(crate) struct RaftService {
    consensus: Consensus,
    told: LogLimiter,
}

impl From<Malformed> for Status {
    fn from(error: Malformed) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

/// A stopped replica is as good as gone for its peers.
fn stopped(error: impl std::fmt::Display) -> Status {
    Status::unavailable(format!("this replica has stopped: {error}"))
}

#[tonic::async_trait]
impl Raft for RaftService {
    async fn append(&self, request: Request<pb::AppendRequest>) -> Result<Response<pb::AppendResponse>, Status> {
        use pb::append_response::Outcome;
        let (_, extensions, request) = request.into_parts();
        let this = &self.consensus;
        this.admit(request.to.as_ref())?;
        this.authenticate_member(&extensions, request.vote.as_ref()).await?;
        let rpc = AppendEntriesRequest {
            vote: codec::vote(request.vote)?,
            prev_log_id: request.previous.map(codec::log_id),
            entries: request.entries.into_iter().map(codec::entry).collect::<Result<_, _>>()?,
            leader_commit: request.committed.map(codec::log_id),
        };
        in_a_row(&rpc)?;
        let ends = [rpc.prev_log_id, rpc.leader_commit].into_iter().flatten();
        self.is_no_leap(&rpc.vote, ends.chain(rpc.entries.iter().map(|entry| entry.log_id)))?;
        self.are_readable(&rpc.vote, &rpc.entries)?;
        let committed = rpc.leader_commit.map(|id| id.index());
        let outcome = match this.raft.append_entries(rpc).await.map_err(stopped)? {
            AppendEntriesResponse::Success | AppendEntriesResponse::PartialSuccess(_) => {
                this.has_read_up_to(committed);
                Outcome::Accepted(pb::Accepted {})
            }
            AppendEntriesResponse::Conflict => Outcome::Conflict(pb::Conflict {}),
            AppendEntriesResponse::HigherVote(vote) => Outcome::Higher(pb_vote(&vote)),
        };
        if !matches!(outcome, Outcome::Higher(_)) {
            this.heard_leader();
        }
        Ok(Response::new(pb::AppendResponse { outcome: Some(outcome) }))
    }

    async fn vote(&self, request: Request<pb::VoteRequest>) -> Result<Response<pb::VoteResponse>, Status> {
        let rpc = self.vote_request(request).await?;
        Ok(vote_response(&self.consensus.raft.vote(rpc).await.map_err(stopped)?))
    }

    async fn pre_vote(&self, request: Request<pb::VoteRequest>) -> Result<Response<pb::VoteResponse>, Status> {
        let rpc = self.vote_request(request).await?;
        Ok(vote_response(&self.consensus.raft.pre_vote(rpc).await.map_err(stopped)?))
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
        let this = &self.consensus;
        this.admit(head.to.as_ref())?;
        this.authenticate_member(&extensions, head.vote.as_ref()).await?;
        let vote = codec::vote(head.vote)?;
        let meta = codec::snapshot_meta(head.snapshot.unwrap_or_default())?;
        self.is_no_leap(&vote, [meta.last_log_id, *meta.last_membership.log_id()].into_iter().flatten())?;
        let size = usize::try_from(head.size).unwrap_or(usize::MAX);
        if size > MAX_SNAPSHOT_BYTES {
            return Err(Malformed("the snapshot is too large").into());
        }
        // Allocated at once: growing would hold the state twice.
        let mut state = BytesMut::with_capacity(size);
        while let Some(part) = next_part(&mut parts).await? {
            let Part::Piece(piece) = part else { return Err(Malformed("the snapshot has two heads").into()) };
            if state.len() + piece.len() > size {
                return Err(Malformed("the snapshot is longer than announced in its head").into());
            }
            state.extend_from_slice(&piece);
        }
        if state.len() != size {
            return Err(Malformed("the snapshot is shorter than announced in its head").into());
        }
        self.is_understood(&vote, "snapshot", |state_machine| state_machine.understands_snapshot(&state))?;
        let snapshot = Snapshot { meta, snapshot: state.freeze() };
        let response = this.raft.install_full_snapshot(vote, snapshot).await.map_err(stopped)?;
        this.heard_leader();
        this.has_read_up_to(None);
        Ok(Response::new(pb::InstallResponse { vote: Some(pb_vote(&response.vote)) }))
    }

    async fn transfer_leader(
        &self,
        request: Request<pb::TransferLeaderRequest>,
    ) -> Result<Response<pb::TransferLeaderResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let this = &self.consensus;
        this.admit(request.to.as_ref())?;
        this.authenticate_member(&extensions, request.from.as_ref()).await?;
        let (from, last) = (codec::vote(request.from)?, request.last.map(codec::log_id));
        self.is_no_leap(&from, last)?;
        let rpc = TransferLeaderRequest::new(from, request.successor, last);
        let answer = this.raft.handle_transfer_leader(rpc).await.map_err(stopped)?;
        answer.map_err(|refused| Status::aborted(refused.to_string()))?;
        Ok(Response::new(pb::TransferLeaderResponse {}))
    }
}

impl RaftService {
    pub(super) fn new(consensus: Consensus) -> Self {
        Self { consensus, told: LogLimiter::default() }
    }

    async fn vote_request(&self, request: Request<pb::VoteRequest>) -> Result<VoteRequest<Types>, Status> {
        let (_, extensions, request) = request.into_parts();
        self.consensus.admit(request.to.as_ref())?;
        self.consensus.authenticate_member(&extensions, request.vote.as_ref()).await?;
        let mut rpc = VoteRequest::new(codec::vote(request.vote)?, request.last.map(codec::log_id));
        self.is_no_leap(&rpc.vote, rpc.last_log_id)?;
        rpc.leadership_transfer = request.leadership_transfer;
        Ok(rpc)
    }

    fn is_no_leap(&self, vote: &RaftVote, positions: impl IntoIterator<Item = LogId>) -> Result<(), Status> {
        let last = self.consensus.with_metrics(|metrics| metrics.last_log_index);
        let checked = self.consensus.term.check_all(vote, last, positions);
        checked.map_err(|leap| self.refused(vote.leader_id.voted_for, "leap", Status::out_of_range(leap.to_string())))
    }

    /// Rejects an unreadable entry: a replica with such an entry stops when the entry is committed, and so would the
    /// whole cluster.
    fn are_readable(&self, vote: &RaftVote, entries: &[RaftEntry]) -> Result<(), Status> {
        for entry in entries {
            if let EntryPayload::Normal(Proposed(bytes)) = &entry.payload {
                let what = format!("log entry {}", entry.log_id.index());
                self.is_understood(vote, &what, |state_machine| state_machine.understands(bytes))?;
            }
        }
        Ok(())
    }

    fn is_understood(
        &self,
        vote: &RaftVote,
        what: &str,
        ask: impl FnOnce(&dyn StateMachine) -> Result<(), NotUnderstood>,
    ) -> Result<(), Status> {
        let state_machine =
            self.consensus.state_machine.read().map_err(|_| stopped("an entry is applied only in part"))?;
        ask(&**state_machine).map_err(|why| {
            let why = format!("this replica cannot read the {what} and does not accept the message: {why}");
            // From any other node the message says nothing about the log.
            if self.consensus.follows(vote) {
                self.consensus.unreadable.send_replace(Some(bounded(&why)));
            }
            self.refused(vote.leader_id.voted_for, "unreadable", Status::unimplemented(why))
        })
    }

    /// Logs the refusal, once a minute for each node.
    fn refused(&self, node: u64, word: &'static str, status: Status) -> Status {
        if let Some(untold) = self.told.is_due(&format!("{node:x}"), word) {
            tracing::warn!(node = format!("{node:x}"), why = status.message(), untold, "message of Raft refused");
        }
        status
    }
}

fn vote_response(response: &VoteResponse<Types>) -> Response<pb::VoteResponse> {
    Response::new(pb::VoteResponse {
        vote: Some(pb_vote(&response.vote)),
        last: response.last_log_id.as_ref().map(pb_log_id),
        granted: response.vote_granted,
    })
}

/// openraft relies on entries that follow each other and the previous position.
fn in_a_row(rpc: &AppendEntriesRequest<Types>) -> Result<(), Malformed> {
    let mut next = rpc.prev_log_id.map_or(0, |id| id.index().saturating_add(1));
    for entry in &rpc.entries {
        if entry.log_id.index() != next {
            return Err(Malformed("the entries are not consecutive"));
        }
        next = next.saturating_add(1);
    }
    Ok(())
}

async fn next_part(parts: &mut Streaming<pb::InstallRequest>) -> Result<Option<pb::install_request::Part>, Status> {
    let late = |_| Status::deadline_exceeded("the next part of the snapshot did not arrive in time");
    let Some(request) = tokio::time::timeout(PIECE_WITHIN, parts.message()).await.map_err(late)?? else {
        return Ok(None);
    };
    request.part.map(Some).ok_or_else(|| Malformed("a part of the snapshot is empty").into())
}
