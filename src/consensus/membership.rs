//! Who takes part, changed by joint consensus on the leader. A name is a member once: a replica that lost its disk is
//! removed under its old node id before it is added under its new one.

use std::collections::BTreeSet;
use std::time::Duration;

use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{ChangeMembers, RaftMetrics};
use tokio::time::{Instant, timeout};

use super::failure::MembershipError;
use super::formation::Answer;
use super::node::Node;
use super::options::MAX_REPLICAS;
use super::types::{Member, Membership, Types, lineage};

/// Long enough for a snapshot; a replica that takes longer stays a learner and goes on catching up.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(30);
pub(super) const CHANGE_WITHIN: Duration = Duration::from_secs(10);
/// A new leader has not heard everybody yet.
const HEARD_WITHIN: Duration = Duration::from_secs(2);

type Changed<R> = Result<R, RaftError<Types, ClientWriteError<Types>>>;

impl Node {
    /// Asks the replica who it is, brings it up to date as a learner, and makes it a voter while there is room.
    /// Whether it votes comes back. A member that answers at another address is found there from now on.
    pub(crate) async fn add_member(&self, name: &str, address: &str) -> Result<bool, MembershipError> {
        check(address)?;
        let _one_at_a_time = self.changing.lock().await;
        self.lead()?;
        let membership = self.membership();
        let known = named(&membership, name);
        if known.is_some() {
            self.not_configured_elsewhere(name, address)?;
        } else {
            has_room(&membership, name)?;
        }
        let answer = self.who_is_at(name, address).await?;
        let node = answer.greeting.node;
        let lineage = lineage(&membership);
        if answer.is_of_another_lineage(lineage) {
            return Err(MembershipError::OtherLineage(name.into()));
        }
        if answer.shares_no_node_with(&membership) {
            return Err(MembershipError::OtherCluster(name.into()));
        }
        let member = Member { replica: name.into(), address: address.into(), lineage };
        match known {
            Some((known, _)) if known != node => return Err(MembershipError::OldNode(name.into())),
            Some((_, known)) if known.address != address => {
                self.has_quorum(&membership).await?;
                let moved = ChangeMembers::SetNodes([(node, member.clone())].into());
                changed(CHANGE_WITHIN, self.raft.change_membership(moved, true)).await?;
            }
            Some(_) | None => {}
        }
        if votes(&self.membership(), node) {
            return Ok(true);
        }
        self.has_quorum(&membership).await?;
        changed(CHANGE_WITHIN, self.raft.add_learner(node, member, false)).await?;
        let begun = Instant::now();
        let caught_up = self.metrics_show(begun + CATCH_UP_WITHIN, |metrics| self.ready(metrics, node, begun));
        if !caught_up.await.map_err(|error| MembershipError::Fatal(error.to_string()))? {
            return Err(MembershipError::CatchingUp(name.into()));
        }
        let voters: BTreeSet<u64> = self.membership().voter_ids().chain([node]).collect();
        if voters.len() > self.options.max_voters {
            return Ok(false);
        }
        let promote = ChangeMembers::AddVoterIds([node].into());
        changed(CHANGE_WITHIN, self.raft.change_membership(promote, true)).await?;
        Ok(true)
    }

    /// A member is looked for where the configuration says, so it is not moved anywhere else.
    fn not_configured_elsewhere(&self, name: &str, address: &str) -> Result<(), MembershipError> {
        let configured = self.options.replicas.iter().find(|(configured, _)| configured == name);
        match configured.filter(|(_, configured)| configured != address) {
            Some((_, known)) => Err(MembershipError::OtherAddress { name: name.into(), known: known.clone() }),
            None => Ok(()),
        }
    }

    async fn who_is_at(&self, name: &str, address: &str) -> Result<Answer, MembershipError> {
        let silent = |why: String| MembershipError::Silent { name: name.into(), why };
        // A connection of its own: the shared one leads to where it was.
        let channel = self.peers.channel(name).map_or_else(|| self.peers.dial(name, address), Ok);
        let channel = channel.map_err(|error| silent(error.to_string()))?;
        let answer = self.greet(name, channel).await;
        answer.map_err(|why| silent(self.or_elsewhere(&why, name, address)))
    }

    /// The leader does not remove itself: it hands over, and the next one is to be asked.
    pub(crate) async fn remove_member(&self, name: &str) -> Result<(), MembershipError> {
        let _one_at_a_time = self.changing.lock().await;
        self.lead()?;
        let membership = self.membership();
        let (node, _) = named(&membership, name).ok_or_else(|| MembershipError::NoMember(name.into()))?;
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let remaining: BTreeSet<u64> = voters.iter().copied().filter(|voter| *voter != node).collect();
        if remaining.is_empty() {
            return Err(MembershipError::LastVoter(name.into()));
        }
        self.has_quorum(&membership).await?;
        self.would_keep_quorum(&membership, name, &remaining).await?;
        if node == self.identity.node {
            let next = self.transfer_to_any().await.map_err(|error| MembershipError::Refused(error.to_string()))?;
            return Err(MembershipError::NotLeader(Some(next)));
        }
        let remove = if voters.contains(&node) {
            ChangeMembers::RemoveVoters([node].into())
        } else {
            ChangeMembers::RemoveNodes([node].into())
        };
        changed(CHANGE_WITHIN, self.raft.change_membership(remove, false)).await
    }

    fn lead(&self) -> Result<(), MembershipError> {
        if self.raft.is_leader() { Ok(()) } else { Err(self.not_leader()) }
    }

    fn not_leader(&self) -> MembershipError {
        MembershipError::NotLeader(self.leader().map(|(_, member)| member.replica))
    }

    /// A change that is appended without a quorum would hang between committed and not, and block every other.
    pub(super) async fn has_quorum(&self, membership: &Membership) -> Result<(), MembershipError> {
        for voters in membership.get_joint_config() {
            if !self.silent(voters).await?.is_empty() {
                return Err(MembershipError::NoQuorum);
            }
        }
        Ok(())
    }

    /// Without most of the voters that remain nothing could be decided after the change, not even its end.
    async fn would_keep_quorum(
        &self,
        membership: &Membership,
        leaves: &str,
        remaining: &BTreeSet<u64>,
    ) -> Result<(), MembershipError> {
        let silent = self.silent(remaining).await?;
        if silent.is_empty() {
            return Ok(());
        }
        let name = |node: &u64| membership.get_node(node).map(|member| member.replica.clone());
        Err(MembershipError::WouldLoseQuorum { name: leaves.into(), silent: silent.iter().filter_map(name).collect() })
    }

    /// Nobody, as soon as most of these have answered what was sent from now on; otherwise those that have not.
    async fn silent(&self, voters: &BTreeSet<u64>) -> Result<Vec<u64>, MembershipError> {
        let begun = Instant::now();
        let silent = |metrics: &RaftMetrics<Types>| -> Vec<u64> {
            voters.iter().copied().filter(|voter| !self.answered(metrics, *voter, begun)).collect()
        };
        let most_answer = |metrics: &RaftMetrics<Types>| silent(metrics).len() * 2 < voters.len();
        let shown = self.metrics_show(begun + HEARD_WITHIN, most_answer).await;
        let most_answered = shown.map_err(|error| MembershipError::Fatal(error.to_string()))?;
        Ok(if most_answered { Vec::new() } else { self.with_metrics(silent) })
    }

    /// The configuration decides where a replica is looked for; where that differs, people are told.
    fn or_elsewhere(&self, why: &str, name: &str, address: &str) -> String {
        match self.options.replicas.iter().find(|(configured, _)| configured == name) {
            Some((_, configured)) if configured != address => format!(
                "{why} at {configured}, where the leader's configuration has it, instead of {address}; change \
                 cluster.replicas on every replica"
            ),
            Some(_) | None => format!("{why} at {address}"),
        }
    }
}

fn named(membership: &Membership, name: &str) -> Option<(u64, Member)> {
    let mut members = membership.nodes();
    members.find(|(_, member)| member.replica == name).map(|(node, member)| (*node, member.clone()))
}

/// What a larger cluster costs was never measured.
fn has_room(membership: &Membership, name: &str) -> Result<(), MembershipError> {
    if membership.nodes().count() < MAX_REPLICAS { Ok(()) } else { Err(MembershipError::Full(name.into())) }
}

/// In every part of a joint membership: a change that was cut short is gone through again.
fn votes(membership: &Membership, node: u64) -> bool {
    let configs = membership.get_joint_config();
    configs.len() == 1 && configs.iter().all(|voters| voters.contains(&node))
}

fn check(address: &str) -> Result<(), MembershipError> {
    match address.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(()),
        Some(_) | None => Err(MembershipError::Address(address.into())),
    }
}

pub(super) async fn changed<R>(
    within: Duration,
    change: impl Future<Output = Changed<R>>,
) -> Result<(), MembershipError> {
    match timeout(within, change).await {
        Ok(Ok(_)) => Ok(()),
        // Perhaps between the two steps; repeated, the next leader does the second.
        Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_) | ClientWriteError::LogEntryDiscarded(_)))) => {
            Err(MembershipError::Interrupted)
        }
        Err(_) => Err(MembershipError::Late),
        Ok(Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(refused)))) => Err(match refused {
            // It has only just been elected.
            ChangeMembershipError::UncommittedLeaderLog(_) => MembershipError::NotLeader(None),
            ChangeMembershipError::InProgress(_) => {
                MembershipError::Refused("another change is under way; try again when it is done".into())
            }
            refused => MembershipError::Refused(refused.to_string()),
        }),
        Ok(Err(RaftError::APIError(error))) => Err(MembershipError::Refused(error.to_string())),
        Ok(Err(RaftError::Fatal(why))) => Err(MembershipError::Fatal(why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_beyond_the_limit_is_refused_and_told_what_to_do() {
        let of = |count: usize| {
            let nodes: std::collections::BTreeMap<u64, Member> = (0..).zip(vec![Member::default(); count]).collect();
            Membership::new(vec![[0].into()], nodes).unwrap()
        };
        assert!(has_room(&of(MAX_REPLICAS - 1), "db-100").is_ok());
        let told = has_room(&of(MAX_REPLICAS), "db-100").unwrap_err().to_string();
        let expected = "db-100 cannot be added: this cluster has 100 replicas, which is the limit; remove one first";
        assert_eq!(told, expected);
    }
}
