//! Linearizable reads: a quorum confirms the leader, then the reader waits until everything committed at that time is
//! applied. A lease would not do: the clock of a frozen leader may not have noticed the freeze.

use std::time::Duration;

use openraft::LinearizerOption;
use openraft::errors::{LinearizableReadError, RaftError};
use tokio::time::{Instant, timeout_at};

use super::failure::RequestError;
use super::forward::left_ms;
use super::node::Consensus;
use super::types::RaftMember;
use allclear_wire::pb::allclear::cluster::v1 as pb;

impl Consensus {
    /// A linearizable read: on return, everything committed before the call is applied and published here. A quorum was
    /// asked, on any replica. Returns the confirmed position. One round of messages to the other replicas serves all
    /// concurrent callers.
    pub async fn ensure_linearizable(&self) -> Result<u64, RequestError> {
        self.confirming.get(async || self.ensure_linearizable_once().await).await
    }

    async fn ensure_linearizable_once(&self) -> Result<u64, RequestError> {
        let deadline = Instant::now() + self.options.timing.deadline;
        // Asking twice changes nothing, so every failure is tried again until the deadline.
        let mut last = RequestError::NoLeader;
        let index = loop {
            let tried = match self.leader() {
                Some((node, _)) if node == self.identity.node => self.read_index(deadline).await,
                Some((node, leader)) => self.read_index_at(node, &leader, deadline).await,
                None => Err(RequestError::NoLeader),
            };
            match tried {
                Ok(index) => break index,
                Err(RequestError::NoLeader) => {}
                Err(error) => last = error,
            }
            if !self.pause(deadline).await {
                return Err(self.stopped().map_or(last, RequestError::Stopped));
            }
        };
        let mut published = self.published.clone();
        match timeout_at(deadline, published.wait_for(|applied| *applied >= Some(index))).await {
            Ok(Ok(_)) => Ok(index),
            Ok(Err(_)) => {
                Err(RequestError::Stopped(self.stopped().unwrap_or_else(|| "the state is no longer available".into())))
            }
            Err(_) => {
                let applied = *self.published.borrow();
                let why = format!(
                    "this replica has applied {applied:?}, the cluster is at {index}, and this replica did not catch \
                     up in time"
                );
                Err(RequestError::Refused(why))
            }
        }
    }

    /// As the leader: the position that a reader must have applied.
    pub(crate) async fn read_index(&self, deadline: Instant) -> Result<u64, RequestError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let option =
            LinearizerOption::new(Some(Duration::ZERO), true).with_wait_timeout(left.min(self.options.timing.lease()));
        match timeout_at(deadline, self.raft.get_read_log_id(option)).await {
            Ok(Ok((read, _))) => Ok(read.index()),
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_)))) => Err(RequestError::NoLeader),
            Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)))) | Err(_) => {
                Err(RequestError::no_quorum())
            }
            Ok(Err(RaftError::Fatal(why))) => Err(RequestError::stopped(&why)),
        }
    }

    async fn read_index_at(&self, node: u64, leader: &RaftMember, deadline: Instant) -> Result<u64, RequestError> {
        let request = pb::ConfirmRequest { to: Some(self.destination(node)), within_ms: left_ms(deadline) };
        // A leader that hangs must not take the whole deadline: another replica may be elected meanwhile.
        let patience = deadline.min(Instant::now() + self.options.timing.lease() * 2);
        let answer = self.call_leader(leader, patience, async |mut client| client.confirm(request).await).await;
        match answer.ok().and_then(|response| response.outcome) {
            Some(pb::confirm_response::Outcome::Index(index)) => Ok(index),
            Some(pb::confirm_response::Outcome::Refused(refused)) => Err(refused.into()),
            None => Err(RequestError::NoLeader),
        }
    }
}
