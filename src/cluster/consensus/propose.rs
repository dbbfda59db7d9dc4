//! Proposals: the leader appends a proposal; other replicas forward a proposal. A proposal that may be committed is
//! never repeated.

use bytes::Bytes;
use openraft::errors::{ClientWriteError, RaftError};
use tokio::time::{Instant, sleep, timeout_at};

use super::failure::RequestError;
use super::forward::left_ms;
use super::node::Consensus;
use super::options::{MAX_ENTRY_BYTES, MAX_PROPOSAL_BYTES};
use super::raft_status::RaftStatus;
use super::types::{Proposed, RaftMember};
use allclear_wire::pb::allclear::cluster::v1 as pb;

impl Consensus {
    /// Stamps, commits and applies the proposal, and returns the verdict. Works on any replica.
    pub async fn propose(&self, proposal: impl Into<Bytes>) -> Result<Bytes, RequestError> {
        let proposal = proposal.into();
        fits(&proposal, MAX_PROPOSAL_BYTES)?;
        let deadline = Instant::now() + self.options.timing.deadline;
        loop {
            let tried = match self.leader() {
                Some((node, _)) if node == self.identity.node => {
                    self.propose_here(&proposal, &self.identity.replica, deadline).await
                }
                Some((node, member)) => self.propose_at(node, &member, &proposal, deadline).await,
                None => Err(RequestError::NoLeader),
            };
            if tried != Err(RequestError::NoLeader) {
                return tried;
            }
            if !self.pause(deadline).await {
                return Err(self.stopped().map_or(RequestError::NoLeader, RequestError::Stopped));
            }
        }
    }

    /// Proposes as the leader. Stamped here, so a refusal by openraft costs nothing but the stamp.
    pub(crate) async fn propose_here(
        &self,
        proposal: &[u8],
        by: &str,
        deadline: Instant,
    ) -> Result<Bytes, RequestError> {
        if !self.raft.is_leader() {
            return Err(RequestError::NoLeader);
        }
        // After a freeze the last status is from before.
        self.update_status();
        let status = self.status.borrow().clone();
        let stamped = match self.state_machine.read() {
            Ok(state_machine) if !state_machine.can_stamp(proposal, &status) => return Err(RequestError::NoLeader),
            // An entry that this program cannot apply would stop the program.
            Ok(state_machine) => state_machine
                .stamp_entry(proposal, by)
                .and_then(|entry| state_machine.understands(&entry).map(|()| entry)),
            Err(_) => return Err(RequestError::stopped(&"an entry is applied only in part")),
        };
        let entry = Bytes::from(
            stamped.map_err(|why| RequestError::Refused(format!("the leader cannot decode the proposal: {why}")))?,
        );
        fits(&entry, MAX_ENTRY_BYTES)?;
        match timeout_at(deadline, self.raft.client_write(Proposed(entry))).await {
            Ok(Ok(response)) => Ok(response.data),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => Err(RequestError::NoLeader),
            Ok(Err(RaftError::APIError(error))) => Err(unknown(error)),
            // The other replicas may still commit an entry appended before the stop.
            Ok(Err(RaftError::Fatal(why))) => Err(unknown(format!("this replica has stopped: {why}"))),
            Err(_) => Err(unknown("no quorum acknowledged the proposal in time")),
        }
    }

    async fn propose_at(
        &self,
        node: u64,
        leader: &RaftMember,
        proposal: &Bytes,
        deadline: Instant,
    ) -> Result<Bytes, RequestError> {
        let request = pb::ProposeRequest {
            to: Some(self.destination(node)),
            by: self.identity.replica.clone(),
            proposal: proposal.clone(),
            within_ms: left_ms(deadline),
        };
        let asked = self.call_leader(leader, deadline, async |mut client| client.propose(request).await);
        let answer = tokio::select! {
            answer = asked => answer,
            // A leader that hangs would keep the caller until the connection is given up.
            () = self.another_leads(&leader.replica) => {
                return Err(unknown(format!("{} did not answer before another replica led", leader.replica)));
            }
        };
        let answer = answer.map_err(|error| match error {
            RequestError::Unknown(why) => unknown(why),
            error => error,
        });
        match answer?.outcome {
            Some(pb::propose_response::Outcome::Verdict(verdict)) => Ok(verdict),
            Some(pb::propose_response::Outcome::Refused(refused)) => Err(refused.into()),
            None => Err(unknown(format!("{} sent an empty answer", leader.replica))),
        }
    }

    /// Returns when another replica has led for long enough for the asked leader to have answered.
    async fn another_leads(&self, than: &str) {
        let mut status = self.status.subscribe();
        let is_other = |status: &RaftStatus| status.leader.as_ref().is_some_and(|leader| leader != than);
        let has_stopped = status.wait_for(is_other).await.is_err();
        if has_stopped {
            std::future::pending::<()>().await;
        }
        // A leader that transferred leadership still answers accepted proposals.
        sleep(self.options.timing.lease()).await;
    }

    /// Whether a replica of this name may propose.
    pub(crate) fn knows(&self, replica: &str) -> bool {
        self.with_metrics(|metrics| metrics.membership_config.nodes().any(|(_, member)| member.replica == replica))
    }
}

fn unknown(why: impl std::fmt::Display) -> RequestError {
    RequestError::Unknown(format!("the proposal may or may not be committed: {why}"))
}

fn fits(bytes: &[u8], limit: usize) -> Result<(), RequestError> {
    let size = bytes.len();
    if size <= limit {
        Ok(())
    } else {
        Err(RequestError::Refused(format!("the proposal has {size} bytes; the limit is {limit}")))
    }
}
