//! Forwards a request to the leader. A request that was not accepted is sent again at once; a request that may have
//! been accepted never.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::failure::RequestError;
use super::node::Consensus;
use super::options::MAX_MESSAGE_BYTES;
use super::types::RaftMember;
use allclear_wire::pb::allclear::cluster::v1 as pb;
use pb::consensus_client::ConsensusClient;

const PAUSE: Duration = Duration::from_millis(20);

impl Consensus {
    /// Waits a moment before the next try; false when the time is over or this replica has stopped.
    pub(crate) async fn pause(&self, deadline: Instant) -> bool {
        if self.stopped().is_some() || Instant::now() + PAUSE >= deadline {
            return false;
        }
        sleep(PAUSE).await;
        true
    }

    pub(crate) async fn call_leader<R>(
        &self,
        member: &RaftMember,
        deadline: Instant,
        call: impl AsyncFnOnce(ConsensusClient<Channel>) -> Result<Response<R>, Status>,
    ) -> Result<R, RequestError> {
        let channel = self.peers.channel_or_dial(&member.replica, &member.address);
        let client = ConsensusClient::new(channel.map_err(|_| RequestError::NoLeader)?)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        match timeout_at(deadline, call(client)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) if not_sent(&status) => {
                self.peers.note_refusal(&member.replica, &status);
                Err(RequestError::NoLeader)
            }
            Ok(Err(status)) => Err(RequestError::Unknown(format!("{}: {}", member.replica, status.message()))),
            Err(_) => Err(RequestError::Unknown(format!("{} did not answer in time", member.replica))),
        }
    }
}

/// True if no connection was made, or the other side rejected the call before reading the proposal.
fn not_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    [Code::FailedPrecondition, Code::PermissionDenied].contains(&status.code())
}

pub(crate) fn left_ms(deadline: Instant) -> u32 {
    let left = deadline.saturating_duration_since(Instant::now());
    u32::try_from(left.as_millis()).unwrap_or(u32::MAX)
}

/// Converts the leader's error to a forwarded refusal, and back.
impl From<RequestError> for pb::Refused {
    fn from(error: RequestError) -> Self {
        let (refusal, reason) = match error {
            RequestError::NoLeader => (pb::Refusal::NotLeader, String::new()),
            RequestError::Refused(reason) => (pb::Refusal::Reasoned, reason),
            RequestError::Unknown(reason) | RequestError::Stopped(reason) => (pb::Refusal::Unknown, reason),
        };
        Self { refusal: refusal.into(), reason }
    }
}

impl From<pb::Refused> for RequestError {
    fn from(refused: pb::Refused) -> Self {
        match refused.refusal() {
            pb::Refusal::NotLeader => Self::NoLeader,
            pb::Refusal::Reasoned => Self::Refused(refused.reason),
            pb::Refusal::Unspecified | pb::Refusal::Unknown => Self::Unknown(refused.reason),
        }
    }
}
