//! Who takes part, changed by joint consensus on the leader. A name is a member once: a replica that lost its disk is
//! removed under its old node id before it is added under its new one.

use std::time::Duration;

use openraft::ChangeMembers;
use openraft::errors::{ClientWriteError, RaftError};
use tokio::time::timeout;

use super::failure::MembershipError;
use super::node::Node;
use super::options::MAX_VOTERS;
use super::types::{Member, Types};

/// Long enough for a snapshot; a replica that takes longer stays a learner and goes on catching up.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(30);
const CHANGE_WITHIN: Duration = Duration::from_secs(10);

type Changed<R> = Result<R, RaftError<Types, ClientWriteError<Types>>>;

impl Node {
    /// Asks the replica who it is, brings it up to date as a learner, and makes it a voter while there is room.
    pub(crate) async fn add_member(&self, name: &str, address: &str) -> Result<(), MembershipError> {
        self.lead()?;
        let silent = |why: String| MembershipError::Silent { name: name.into(), why };
        let channel = self.peers.channel_or_dial(name, address).map_err(|error| silent(error.to_string()))?;
        let node = self.greet(name, channel).await.map_err(silent)?.greeting.node;
        let membership = self.membership();
        match membership.nodes().find(|(_, member)| member.replica == name) {
            Some((known, _)) if *known != node => return Err(MembershipError::OldNode(name.into())),
            Some((known, _)) if membership.voter_ids().any(|voter| voter == *known) => return Ok(()),
            Some(_) | None => {}
        }
        let member = Member { replica: name.into(), address: address.into() };
        changed(CATCH_UP_WITHIN, self.raft.add_learner(node, member, true)).await?;
        if membership.voter_ids().count() < MAX_VOTERS {
            let promote = ChangeMembers::AddVoterIds([node].into());
            changed(CHANGE_WITHIN, self.raft.change_membership(promote, true)).await?;
        }
        Ok(())
    }

    pub(crate) async fn remove_member(&self, name: &str) -> Result<(), MembershipError> {
        self.lead()?;
        let membership = self.membership();
        let mut members = membership.nodes();
        let found = members.find(|(_, member)| member.replica == name);
        let node = *found.ok_or_else(|| MembershipError::NoMember(name.into()))?.0;
        let voters: Vec<u64> = membership.voter_ids().collect();
        if voters == [node] {
            return Err(MembershipError::LastVoter(name.into()));
        }
        let remove = if voters.contains(&node) {
            ChangeMembers::RemoveVoters([node].into())
        } else {
            ChangeMembers::RemoveNodes([node].into())
        };
        changed(CHANGE_WITHIN, self.raft.change_membership(remove, false)).await
    }

    fn lead(&self) -> Result<(), MembershipError> {
        if self.raft.is_leader() {
            return Ok(());
        }
        Err(MembershipError::NotLeader(self.leader().map(|(_, member)| member.replica)))
    }
}

async fn changed<R>(within: Duration, change: impl Future<Output = Changed<R>>) -> Result<(), MembershipError> {
    match timeout(within, change).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(RaftError::APIError(error))) => Err(MembershipError::Refused(error.to_string())),
        Ok(Err(RaftError::Fatal(why))) => Err(MembershipError::Fatal(why.to_string())),
        Err(_) => Err(MembershipError::Late),
    }
}
