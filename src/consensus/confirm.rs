//! Linearizable reads: a quorum confirms that the leader still leads, then the reader waits until it has applied
//! what was committed by then. Never by a lease: a frozen leader's clock may not have noticed the freeze.

use std::time::Duration;

use openraft::LinearizerOption;
use openraft::errors::{LinearizableReadError, RaftError};
use tokio::time::{Instant, timeout_at};

use super::ask::{Failed, left_ms};
use super::failure::ConfirmError;
use super::node::Node;
use super::types::Member;
use crate::wire::pb::allclear::cluster::v1 as pb;

impl Node {
    /// A round of messages to the others serves all who ask for it at the same time.
    pub(crate) async fn confirm(&self) -> Result<u64, ConfirmError> {
        self.confirming.ask(async || self.confirm_alone().await).await
    }

    async fn confirm_alone(&self) -> Result<u64, ConfirmError> {
        let deadline = Instant::now() + self.options.timing.deadline;
        // Asking twice changes nothing, so every failure is tried again until the deadline.
        let mut last = ConfirmError::NoLeader;
        let index = loop {
            let tried = match self.leader() {
                Some((node, _)) if node == self.identity.node => self.read_index(deadline).await,
                Some((node, leader)) => self.read_index_at(node, &leader, deadline).await,
                None => Err(Failed::NotTaken),
            };
            match tried {
                Ok(index) => break index,
                Err(Failed::NotTaken) => {}
                Err(Failed::Over(error)) => last = error,
            }
            if !self.pause(deadline).await {
                return Err(self.stopped().map_or(last, ConfirmError::Fatal));
            }
        };
        let mut published = self.published.clone();
        match timeout_at(deadline, published.wait_for(|applied| *applied >= Some(index))).await {
            Ok(Ok(_)) => Ok(index),
            Ok(Err(_)) => Err(ConfirmError::Fatal(self.stopped().unwrap_or_else(|| "the state is gone".into()))),
            Err(_) => Err(ConfirmError::Behind { applied: *self.published.borrow(), index }),
        }
    }

    /// As the leader: the position that a reader must have applied.
    pub(crate) async fn read_index(&self, deadline: Instant) -> Result<u64, Failed<ConfirmError>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let option =
            LinearizerOption::new(Some(Duration::ZERO), true).with_wait_timeout(left.min(self.options.timing.lease()));
        match timeout_at(deadline, self.raft.get_read_log_id(option)).await {
            Ok(Ok((read, _))) => Ok(read.index()),
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_)))) => Err(Failed::NotTaken),
            Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)))) | Err(_) => {
                Err(Failed::Over(ConfirmError::NoQuorum))
            }
            Ok(Err(RaftError::Fatal(why))) => Err(Failed::Over(ConfirmError::Fatal(why.to_string()))),
        }
    }

    async fn read_index_at(&self, node: u64, leader: &Member, deadline: Instant) -> Result<u64, Failed<ConfirmError>> {
        let request = pb::ConfirmRequest { to: Some(self.destination(node)), within_ms: left_ms(deadline) };
        // A leader that hangs must not take the whole deadline: another may be elected meanwhile.
        let patience = deadline.min(Instant::now() + self.options.timing.lease() * 2);
        let answer = self.call_leader(leader, patience, async |mut client| client.confirm(request).await).await;
        match answer.ok().and_then(|response| response.outcome) {
            Some(pb::confirm_response::Outcome::Index(index)) => Ok(index),
            Some(pb::confirm_response::Outcome::Refused(refused)) if refused.refusal() == pb::Refusal::NoQuorum => {
                Err(Failed::Over(ConfirmError::NoQuorum))
            }
            Some(pb::confirm_response::Outcome::Refused(_)) | None => Err(Failed::NotTaken),
        }
    }
}
