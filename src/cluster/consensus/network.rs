//! openraft's calls to other replicas, over gRPC. Every call has a deadline. The error of a failed call shows whether
//! an immediate retry can help.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::codec::{self, Malformed, pb_log_id, pb_vote};
use super::options::{MAX_MESSAGE_BYTES, MAX_SNAPSHOT_BYTES};
use super::peers::{Peers, said};
use super::term_check::OwnTerm;
use super::types::{RaftMember, RaftVote, Snapshot, Types};
use allclear_wire::pb::allclear::raft::v1 as pb;
use pb::raft_client::RaftClient;

type RpcError = RPCError<Types>;

/// openraft would allow entries as long as a heartbeat: then a full batch never passes a slow line to a slow disk.
/// Heartbeats are sent beside the batch, and a dead connection is noticed earlier, by the kernel or the keepalive.
const APPEND_WITHIN: Duration = Duration::from_secs(5);
const PIECE_BYTES: usize = 512 << 10;

/// Creates a link to each member.
pub(crate) struct Network {
    pub(crate) cluster: String,
    pub(crate) node: u64,
    pub(crate) peers: Arc<Peers>,
    pub(super) term: OwnTerm,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = PeerLink;

    async fn new_client(&mut self, target: u64, member: &RaftMember) -> PeerLink {
        PeerLink {
            to: pb::Destination { cluster: self.cluster.clone(), node: target },
            node: self.node,
            member: member.clone(),
            peers: Arc::clone(&self.peers),
            term: self.term.clone(),
        }
    }
}

fn client(channel: Channel) -> RaftClient<Channel> {
    RaftClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// The link to one member.
pub(crate) struct PeerLink {
    to: pb::Destination,
    node: u64,
    member: RaftMember,
    peers: Arc<Peers>,
    term: OwnTerm,
}

impl PeerLink {
    async fn call<R>(
        &self,
        action: RPCTypes,
        within: Duration,
        call: impl AsyncFnOnce(RaftClient<Channel>) -> Result<tonic::Response<R>, Status>,
    ) -> Result<R, RpcError> {
        // A member may move while its log is sent.
        let channel = self.peers.latest(&self.member.replica, &self.member.address);
        let client = client(channel.map_err(|error| Unreachable::from_string(error.to_string()))?);
        let result = match tokio::time::timeout(within, call(client)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => {
                self.peers.note_refusal(&self.member.replica, &status);
                Err(failed(&status))
            }
            Err(_) => Err(Timeout { action, id: self.node, target: self.to.node, timeout: within }.into()),
        };
        self.peers.note(&self.member.replica, result.as_ref().err().map(ToString::to_string).as_deref());
        result
    }

    /// Decodes the vote in an answer. A vote too far ahead is no answer: this replica would adopt the term.
    fn vote_in(&self, answer: Option<pb::Vote>) -> Result<RaftVote, RpcError> {
        let vote = codec::vote(answer)?;
        self.term.check(&vote).map_err(|leap| {
            let why = format!("{} answers with a vote that is not accepted: {leap}", self.member.replica);
            self.peers.note(&self.member.replica, Some(&why));
            Unreachable::from_string(why)
        })?;
        Ok(vote)
    }

    fn vote_response(&self, response: pb::VoteResponse) -> Result<VoteResponse<Types>, RpcError> {
        Ok(VoteResponse::new(self.vote_in(response.vote)?, response.last.map(codec::log_id), response.granted))
    }

    fn vote_request(&self, rpc: &VoteRequest<Types>) -> pb::VoteRequest {
        pb::VoteRequest {
            to: Some(self.to.clone()),
            vote: Some(pb_vote(&rpc.vote)),
            last: rpc.last_log_id.as_ref().map(pb_log_id),
            leadership_transfer: rpc.leadership_transfer,
        }
    }
}

/// No replica there, or another replica: wait before the next try. Any other failure may pass at once.
fn failed(status: &Status) -> RpcError {
    let why = format!("{:?}: {}", status.code(), said(status));
    let is_lasting =
        [Code::Unavailable, Code::FailedPrecondition, Code::Unimplemented, Code::PermissionDenied, Code::OutOfRange];
    if is_lasting.contains(&status.code()) {
        Unreachable::from_string(why).into()
    } else {
        NetworkError::from_string(why).into()
    }
}

impl From<Malformed> for RpcError {
    fn from(error: Malformed) -> Self {
        NetworkError::new(&error).into()
    }
}

impl RaftNetworkV2<Types> for PeerLink {
    type SnapshotData = Bytes;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RpcError> {
        let within = if rpc.entries.is_empty() { option.soft_ttl() } else { option.soft_ttl().max(APPEND_WITHIN) };
        let request = pb::AppendRequest {
            to: Some(self.to.clone()),
            vote: Some(pb_vote(&rpc.vote)),
            previous: rpc.prev_log_id.as_ref().map(pb_log_id),
            entries: rpc.entries.iter().map(codec::pb_entry).collect(),
            committed: rpc.leader_commit.as_ref().map(pb_log_id),
        };
        let call = async |mut client: RaftClient<Channel>| client.append(request).await;
        match self.call(RPCTypes::AppendEntries, within, call).await?.outcome {
            Some(pb::append_response::Outcome::Accepted(pb::Accepted {})) => Ok(AppendEntriesResponse::Success),
            Some(pb::append_response::Outcome::Conflict(pb::Conflict {})) => Ok(AppendEntriesResponse::Conflict),
            Some(pb::append_response::Outcome::Higher(vote)) => {
                Ok(AppendEntriesResponse::HigherVote(self.vote_in(Some(vote))?))
            }
            None => Err(Malformed("the answer is empty").into()),
        }
    }

    async fn vote(&mut self, rpc: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, RpcError> {
        let request = self.vote_request(&rpc);
        let call = async |mut client: RaftClient<Channel>| client.vote(request).await;
        self.vote_response(self.call(RPCTypes::Vote, option.soft_ttl(), call).await?)
    }

    async fn pre_vote(&mut self, rpc: VoteRequest<Types>, option: RPCOption) -> Result<VoteResponse<Types>, RpcError> {
        let request = self.vote_request(&rpc);
        let call = async |mut client: RaftClient<Channel>| client.pre_vote(request).await;
        self.vote_response(self.call(RPCTypes::Vote, option.soft_ttl(), call).await?)
    }

    async fn full_snapshot(
        &mut self,
        vote: RaftVote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let size = snapshot.snapshot.len();
        if size > MAX_SNAPSHOT_BYTES {
            let why = format!("the snapshot has {size} bytes; the limit is {MAX_SNAPSHOT_BYTES}");
            return Err(Unreachable::from_string(why).into());
        }
        let head = pb::InstallHead {
            to: Some(self.to.clone()),
            vote: Some(pb_vote(&vote)),
            snapshot: Some(codec::pb_snapshot_head(&snapshot.meta)),
            size: u64::try_from(size).unwrap_or(u64::MAX),
        };
        let parts = tokio_stream::iter(pieces(head, snapshot.snapshot));
        let call = async |mut client: RaftClient<Channel>| client.install(parts).await;
        let install = self.call(RPCTypes::InstallSnapshot, option.soft_ttl(), call);
        match select(std::pin::pin!(install), std::pin::pin!(cancel)).await {
            Either::Left((response, _)) => Ok(SnapshotResponse::new(self.vote_in(response?.vote)?)),
            Either::Right((closed, _)) => Err(closed.into()),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RpcError> {
        let request = pb::TransferLeaderRequest {
            to: Some(self.to.clone()),
            from: Some(pb_vote(request.from_leader())),
            successor: *request.to_node_id(),
            last: request.last_log_id().map(pb_log_id),
        };
        let call = async |mut client: RaftClient<Channel>| client.transfer_leader(request).await;
        self.call(RPCTypes::TransferLeader, option.soft_ttl(), call).await?;
        Ok(Ok(()))
    }
}

/// The head, then the state in pieces that share the memory of the state.
fn pieces(head: pb::InstallHead, mut state: Bytes) -> impl Iterator<Item = pb::InstallRequest> + Send {
    use pb::install_request::Part;
    let rest = std::iter::from_fn(move || {
        let piece = state.split_to(state.len().min(PIECE_BYTES));
        (!piece.is_empty()).then_some(Part::Piece(piece))
    });
    std::iter::once(Part::Head(head)).chain(rest).map(|part| pb::InstallRequest { part: Some(part) })
}

#[cfg(test)]
mod tests;
