//! Proposals: taken by the leader, forwarded by everybody else, never repeated once one may have been committed.

use bytes::Bytes;
use openraft::errors::{ClientWriteError, RaftError};
use openraft::rt::WatchReceiver as _;
use tokio::time::{Instant, sleep, timeout_at};

use super::ask::{CallFailed, Failed, left_ms};
use super::failure::ProposeError;
use super::node::Node;
use super::options::{MAX_ENTRY_BYTES, MAX_PROPOSAL_BYTES};
use super::standing::Standing;
use super::types::{Member, Proposed};
use crate::wire::pb::allclear::cluster::v1 as pb;

type Tried = Result<Bytes, Failed<ProposeError>>;

impl Node {
    pub(crate) async fn propose(&self, proposal: Bytes) -> Result<Bytes, ProposeError> {
        fits(&proposal, MAX_PROPOSAL_BYTES)?;
        let deadline = Instant::now() + self.options.timing.deadline;
        loop {
            let tried = match self.leader() {
                Some((node, _)) if node == self.identity.node => {
                    self.propose_here(&proposal, &self.identity.replica, deadline).await
                }
                Some((node, member)) => self.propose_at(node, &member, &proposal, deadline).await,
                None => Err(Failed::NotTaken),
            };
            match tried {
                Ok(verdict) => return Ok(verdict),
                Err(Failed::Over(error)) => return Err(error),
                Err(Failed::NotTaken) => {}
            }
            if !self.pause(deadline).await {
                return Err(self.stopped().map_or(ProposeError::NoLeader, ProposeError::Fatal));
            }
        }
    }

    /// As the leader. Stamped here, so that a refusal by openraft costs nothing but the stamp.
    pub(crate) async fn propose_here(&self, proposal: &[u8], by: &str, deadline: Instant) -> Tried {
        if !self.raft.is_leader() {
            return Err(Failed::NotTaken);
        }
        let stamped = match self.fold.read() {
            Ok(fold) => fold.stamp(proposal, by),
            Err(_) => return Err(Failed::Over(ProposeError::Fatal("the state was left half applied".into()))),
        };
        let entry = Bytes::from(stamped.map_err(|why| Failed::Over(ProposeError::Undecodable(why.to_string())))?);
        fits(&entry, MAX_ENTRY_BYTES).map_err(Failed::Over)?;
        match timeout_at(deadline, self.raft.client_write(Proposed(entry))).await {
            Ok(Ok(response)) => Ok(response.data),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => Err(Failed::NotTaken),
            Ok(Err(RaftError::APIError(error))) => Err(unknown(error.to_string())),
            // What was appended before the stop may still be committed by the others.
            Ok(Err(RaftError::Fatal(why))) => Err(unknown(format!("this replica has stopped: {why}"))),
            Err(_) => Err(unknown("no quorum acknowledged it in time".into())),
        }
    }

    async fn propose_at(&self, node: u64, leader: &Member, proposal: &Bytes, deadline: Instant) -> Tried {
        let request = pb::ProposeRequest {
            to: Some(self.destination(node)),
            by: self.identity.replica.clone(),
            proposal: proposal.clone(),
            within_ms: left_ms(deadline),
        };
        let asked = self.call_leader(leader, deadline, async |mut client| client.propose(request).await);
        let answer = tokio::select! {
            answer = asked => answer,
            // One that hangs would keep the caller until the connection is given up.
            () = self.another_leads(&leader.replica) => {
                return Err(unknown(format!("{} did not answer before another replica led", leader.replica)));
            }
        };
        match answer {
            Ok(pb::ProposeResponse { outcome: Some(pb::propose_response::Outcome::Verdict(verdict)) }) => Ok(verdict),
            Ok(pb::ProposeResponse { outcome: Some(pb::propose_response::Outcome::Refused(refused)) }) => {
                Err(refused_by_leader(&refused, proposal))
            }
            Ok(pb::ProposeResponse { outcome: None }) => Err(unknown(format!("{} said nothing", leader.replica))),
            Err(CallFailed::NotSent) => Err(Failed::NotTaken),
            Err(CallFailed::Lost(why)) => Err(unknown(why)),
        }
    }

    /// Returns when another replica has led for long enough that the one that was asked would have answered.
    async fn another_leads(&self, than: &str) {
        let mut standing = self.standing.subscribe();
        let is_other = |standing: &Standing| standing.leader.as_ref().is_some_and(|leader| leader != than);
        let has_stopped = standing.wait_for(is_other).await.is_err();
        if has_stopped {
            std::future::pending::<()>().await;
        }
        // One that has handed over still answers what it had taken.
        sleep(self.options.timing.lease()).await;
    }

    /// Whether somebody of this name may propose.
    pub(crate) fn knows(&self, replica: &str) -> bool {
        let metrics = self.raft.metrics();
        metrics.borrow_watched().membership_config.nodes().any(|(_, member)| member.replica == replica)
    }
}

fn refused_by_leader(refused: &pb::Refused, proposal: &Bytes) -> Failed<ProposeError> {
    let reason = refused.reason.clone();
    match refused.refusal() {
        pb::Refusal::NotLeader => Failed::NotTaken,
        pb::Refusal::Undecodable => Failed::Over(ProposeError::Undecodable(reason)),
        pb::Refusal::TooLarge => {
            Failed::Over(ProposeError::TooLarge { size: proposal.len(), limit: MAX_PROPOSAL_BYTES })
        }
        pb::Refusal::Unspecified | pb::Refusal::Unknown | pb::Refusal::NoQuorum | pb::Refusal::Reasoned => {
            unknown(reason)
        }
    }
}

fn unknown(why: String) -> Failed<ProposeError> {
    Failed::Over(ProposeError::Unknown(why))
}

fn fits(bytes: &[u8], limit: usize) -> Result<(), ProposeError> {
    if bytes.len() > limit { Err(ProposeError::TooLarge { size: bytes.len(), limit }) } else { Ok(()) }
}

/// What the asking replica is told.
pub(crate) fn pb_refused(failed: Failed<ProposeError>) -> pb::Refused {
    let (refusal, reason) = match failed {
        Failed::NotTaken | Failed::Over(ProposeError::NoLeader) => (pb::Refusal::NotLeader, String::new()),
        Failed::Over(ProposeError::Undecodable(reason)) => (pb::Refusal::Undecodable, reason),
        Failed::Over(ProposeError::TooLarge { .. }) => (pb::Refusal::TooLarge, String::new()),
        Failed::Over(ProposeError::Unknown(reason) | ProposeError::Fatal(reason)) => (pb::Refusal::Unknown, reason),
    };
    pb::Refused { refusal: refusal.into(), reason }
}
