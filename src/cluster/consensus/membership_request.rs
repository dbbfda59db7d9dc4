//! An operator's requests about members and leadership. The leader carries out a request; other replicas forward a
//! request.

use std::time::Duration;

use tokio::time::Instant;

use super::failure::RequestError;
use super::forward::left_ms;
use super::node::Consensus;
use super::types::RaftMember;
use allclear_wire::pb::allclear::cluster::v1 as pb;
use pb::change_request::Change;
use pb::change_response::Outcome;

/// Longer than an election, and than a transfer of leadership before the change.
const LEADER_WITHIN: Duration = Duration::from_secs(8);
/// Longer than bringing a replica up to date and two steps of joint consensus.
pub(super) const CHANGE_WITHIN: Duration = Duration::from_secs(50);

/// Changes requested by an operator, who is named in the logs. On any replica.
pub struct OperatorContext {
    pub(super) consensus: Consensus,
    pub(super) who: String,
}

impl OperatorContext {
    /// Brings a replica up to date and makes the replica a voter while there is room; returns whether the replica
    /// votes.
    pub async fn add_member(&self, replica: &str, address: &str) -> Result<bool, RequestError> {
        let add = pb::AddMember { replica: replica.into(), address: address.into() };
        Ok(self.change(Change::Add(add)).await?.voter)
    }

    /// Removes a member, also an unreachable member, and also the leader, which transfers leadership first.
    pub async fn remove_member(&self, replica: &str) -> Result<(), RequestError> {
        let remove = pb::RemoveMember { replica: replica.into() };
        self.change(Change::Remove(remove)).await.map(drop)
    }

    /// Transfers leadership to this voter, or to any up-to-date voter; returns the new leader.
    pub async fn transfer_leadership(&self, to: Option<&str>) -> Result<String, RequestError> {
        let transfer = pb::TransferLeader { replica: to.map(Into::into) };
        Ok(self.change(Change::Transfer(transfer)).await?.leader)
    }

    async fn change(&self, change: Change) -> Result<pb::Changed, RequestError> {
        tracing::info!(who = self.who, ?change, "operator request received");
        let (consensus, who) = (self.consensus.clone(), self.who.clone());
        // The loss of the caller does not cancel a change under way: half of the change may be committed.
        let changing = tokio::spawn(async move {
            let changed = consensus.change(&change, &who).await;
            match &changed {
                Ok(done) => tracing::info!(who, ?change, ?done, "membership request completed"),
                Err(error) => tracing::warn!(who, ?change, %error, "membership request failed"),
            }
            changed
        });
        changing.await.unwrap_or_else(|_| Err(RequestError::Unknown("the change did not finish".into())))
    }
}

impl Consensus {
    async fn change(&self, change: &Change, who: &str) -> Result<pb::Changed, RequestError> {
        let deadline = Instant::now() + CHANGE_WITHIN;
        let patience = Instant::now() + LEADER_WITHIN;
        loop {
            let tried = match self.leader_to_ask().await {
                Some((node, _)) if node == self.identity.node => self.change_here(change).await,
                Some((node, leader)) => self.change_at((node, &leader), change, who, deadline).await,
                None => Err(RequestError::NoLeader),
            };
            if tried != Err(RequestError::NoLeader) {
                return tried;
            }
            if !self.pause(patience).await {
                return Err(self.stopped().map_or(RequestError::NoLeader, RequestError::Stopped));
            }
        }
    }

    /// Carries out a change as the leader, for another replica.
    pub(super) async fn change_for(&self, change: &Change, who: &str, by: &str) -> Result<pb::Changed, RequestError> {
        tracing::info!(who, by, ?change, "membership request received through another replica");
        let changed = self.change_here(change).await;
        tracing::info!(who, by, ?change, ?changed, "membership request answered");
        changed
    }

    async fn change_here(&self, change: &Change) -> Result<pb::Changed, RequestError> {
        match change {
            Change::Add(pb::AddMember { replica, address }) => {
                let voter = self.add_member(replica, address).await?;
                Ok(pb::Changed { voter, ..pb::Changed::default() })
            }
            Change::Remove(pb::RemoveMember { replica }) => {
                self.remove_member(replica).await?;
                Ok(pb::Changed::default())
            }
            Change::Transfer(pb::TransferLeader { replica }) => {
                let leader = self.transfer_to(replica.as_deref()).await?;
                Ok(pb::Changed { leader, ..pb::Changed::default() })
            }
        }
    }

    async fn change_at(
        &self,
        (node, leader): (u64, &RaftMember),
        change: &Change,
        who: &str,
        deadline: Instant,
    ) -> Result<pb::Changed, RequestError> {
        let request = pb::ChangeRequest {
            to: Some(self.destination(node)),
            by: self.identity.replica.clone(),
            on_behalf_of: who.into(),
            within_ms: left_ms(deadline),
            change: Some(change.clone()),
        };
        let answer = self.call_leader(leader, deadline, async |mut client| client.change(request).await).await?;
        match answer.outcome {
            Some(Outcome::Changed(changed)) => Ok(changed),
            Some(Outcome::Refused(refused)) => Err(refused.into()),
            None => Err(RequestError::Unknown(format!("{} sent an empty answer", leader.replica))),
        }
    }
}
