//! Changes the membership by joint consensus, as the leader. A name votes once: a replica with a lost disk is removed
//! under its old node id before the addition under its new node id.

use std::collections::BTreeSet;
use std::time::Duration;

use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{ChangeMembers, RaftMetrics};
use tokio::time::{Instant, timeout};

use super::bootstrap::HelloReply;
use super::failure::RequestError;
use super::node::Consensus;
use super::options::MAX_REPLICAS;
use super::types::{Membership, RaftMember, Types, lineage};

/// Long enough for a snapshot; a replica that takes longer stays a learner and goes on catching up.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(30);
pub(super) const CHANGE_WITHIN: Duration = Duration::from_secs(10);
/// A new leader has not heard all members yet.
const HEARD_WITHIN: Duration = Duration::from_secs(2);

type Changed<R> = Result<R, RaftError<Types, ClientWriteError<Types>>>;

impl Consensus {
    /// On the leader: asks the replica for its identity, brings the replica up to date as a learner, and makes the
    /// replica a voter while there is room. Returns whether the replica votes. A member that answers at another address
    /// is dialled there from now on.
    pub async fn add_member(&self, name: &str, address: &str) -> Result<bool, RequestError> {
        if !is_address(address) {
            return Err(RequestError::Refused(format!("the address {address:?} is not host:port")));
        }
        let _one_at_a_time = self.changing.lock().await;
        self.lead()?;
        let membership = self.membership();
        let known = named(&membership, name);
        if known.is_empty() {
            has_room(&membership, name)?;
        } else {
            self.not_configured_elsewhere(name, address)?;
        }
        let answer = self.who_is_at(name, address).await?;
        let node = answer.greeting.node;
        let lineage = lineage(&membership);
        if answer.is_of_another_lineage(lineage) {
            return Err(RequestError::Refused(format!(
                "the data directory of {name} is older than the restore of this cluster from one disk; stop {name}, \
                 empty its data_dir and start {name} again; the leader then adds {name}"
            )));
        }
        if answer.shares_no_node_with(&membership) {
            return Err(RequestError::Refused(format!(
                "{name} holds the log of another cluster, and the two logs must not mix; stop {name}, empty its \
                 data_dir, start {name} again and repeat the command"
            )));
        }
        let member = RaftMember { replica: name.into(), address: address.into(), lineage };
        if known.iter().any(|(known, _)| *known != node) {
            return Err(RequestError::Refused(format!(
                "{name} is a member with another data_dir; remove {name} first, because the old vote must not return"
            )));
        }
        if known.iter().any(|(_, known)| known.address != address) {
            self.has_quorum(&membership).await?;
            let moved = ChangeMembers::SetNodes([(node, member.clone())].into());
            changed(CHANGE_WITHIN, self.raft.change_membership(moved, true)).await?;
        }
        if votes(&self.membership(), node) {
            return Ok(true);
        }
        self.has_quorum(&membership).await?;
        changed(CHANGE_WITHIN, self.raft.add_learner(node, member, false)).await?;
        let begun = Instant::now();
        let caught_up = self.metrics_show(begun + CATCH_UP_WITHIN, |metrics| self.ready(metrics, node, begun));
        if caught_up.await?.is_none() {
            return Err(catching_up(name));
        }
        let voters: BTreeSet<u64> = self.membership().voter_ids().chain([node]).collect();
        if voters.len() > self.options.max_voters {
            return Ok(false);
        }
        let promote = ChangeMembers::AddVoterIds([node].into());
        changed(CHANGE_WITHIN, self.raft.change_membership(promote, true)).await?;
        Ok(true)
    }

    /// Rejects an address other than the configured address: members are dialled at the configured address.
    fn not_configured_elsewhere(&self, name: &str, address: &str) -> Result<(), RequestError> {
        match self.options.address_of(name).filter(|known| *known != address) {
            Some(known) => Err(RequestError::Refused(format!(
                "the leader's configuration lists {name} at {known}; change cluster.replicas on every replica instead"
            ))),
            None => Ok(()),
        }
    }

    async fn who_is_at(&self, name: &str, address: &str) -> Result<HelloReply, RequestError> {
        let silent = |why: String| RequestError::Refused(format!("{name} cannot be added: {why}; start {name} first"));
        // A separate connection: the shared connection leads to the previous address.
        let channel = self.peers.channel(name).map_or_else(|| self.peers.dial(name, address), Ok);
        let channel = channel.map_err(|error| silent(error.to_string()))?;
        // The configuration decides the dialled address; the error message reports a difference.
        let elsewhere = self.options.address_of(name).filter(|configured| *configured != address);
        let place = elsewhere.map_or_else(
            || address.to_owned(),
            |configured| {
                format!(
                    "{configured}, the address in the leader's configuration, instead of {address}; change \
                     cluster.replicas on every replica"
                )
            },
        );
        self.send_hello(name, channel).await.map_err(|why| silent(format!("{why} at {place}")))
    }

    /// On the leader: removes a member, also an unreachable member, with all nodes under its name. The leader does not
    /// remove itself: the leader transfers leadership, and the caller has to ask the next leader.
    pub async fn remove_member(&self, name: &str) -> Result<(), RequestError> {
        let _one_at_a_time = self.changing.lock().await;
        self.lead()?;
        let membership = self.membership();
        let nodes: BTreeSet<u64> = named(&membership, name).into_iter().map(|(node, _)| node).collect();
        if nodes.is_empty() {
            return Err(RequestError::Refused(format!("{name} is not a member of this cluster")));
        }
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let remaining = &voters - &nodes;
        if remaining.is_empty() {
            return Err(RequestError::Refused(format!(
                "{name} is the only voter; without {name} there would be no quorum"
            )));
        }
        self.has_quorum(&membership).await?;
        // Without most of the remaining voters no decision is possible after the change, not even the end of the
        // change.
        let silent = self.silent(&remaining).await?;
        if !silent.is_empty() {
            let silent = silent.iter().filter_map(|node| Some(membership.get_node(node)?.replica.as_str()));
            let names: Vec<&str> = silent.collect();
            return Err(RequestError::Refused(format!(
                "without {name} there would be no quorum: {} of the remaining voters do not answer ({}); bring these \
                 voters back or remove these voters first",
                names.len(),
                names.join(", ")
            )));
        }
        if nodes.contains(&self.identity.node) {
            self.transfer_to(None).await?;
            return Err(RequestError::NoLeader);
        }
        changed(CHANGE_WITHIN, self.raft.change_membership(without(&membership, &nodes), false)).await
    }

    /// Requires a quorum: a change appended without a quorum would hang between committed and not, and block every
    /// other.
    pub(super) async fn has_quorum(&self, membership: &Membership) -> Result<(), RequestError> {
        for voters in membership.get_joint_config() {
            if !self.silent(voters).await?.is_empty() {
                return Err(RequestError::no_quorum());
            }
        }
        Ok(())
    }

    /// Empty as soon as most of `voters` have answered messages sent from now on; otherwise the voters without an
    /// answer.
    async fn silent(&self, voters: &BTreeSet<u64>) -> Result<Vec<u64>, RequestError> {
        let begun = Instant::now();
        let silent = |metrics: &RaftMetrics<Types>| -> Vec<u64> {
            voters.iter().copied().filter(|voter| !self.answered(metrics, *voter, begun)).collect()
        };
        let most_answer = |metrics: &RaftMetrics<Types>| silent(metrics).len() * 2 < voters.len();
        let most_answered = self.metrics_show(begun + HEARD_WITHIN, most_answer).await?;
        Ok(if most_answered.is_some() { Vec::new() } else { self.with_metrics(silent) })
    }
}

/// The nodes under a name: more than one if the disk of a voter was lost and the new disk is a learner.
fn named(membership: &Membership, name: &str) -> Vec<(u64, RaftMember)> {
    let members = membership.nodes().filter(|(_, member)| member.replica == name);
    members.map(|(node, member)| (*node, member.clone())).collect()
}

/// The change that removes the nodes, voters or not.
pub(super) fn without(membership: &Membership, nodes: &BTreeSet<u64>) -> ChangeMembers<u64, RaftMember> {
    let voters: BTreeSet<u64> = membership.voter_ids().filter(|voter| nodes.contains(voter)).collect();
    let learners = ChangeMembers::RemoveNodes(nodes - &voters);
    if voters.is_empty() {
        return learners;
    }
    ChangeMembers::Batch(vec![ChangeMembers::RemoveVoters(voters), learners])
}

/// Rejects a replica beyond the limit: the cost of a larger cluster was never measured.
fn has_room(membership: &Membership, name: &str) -> Result<(), RequestError> {
    if membership.nodes().count() < MAX_REPLICAS {
        return Ok(());
    }
    Err(RequestError::Refused(format!(
        "{name} cannot be added: this cluster has {MAX_REPLICAS} replicas, which is the limit; remove a replica first"
    )))
}

pub(super) fn catching_up(name: &str) -> RequestError {
    RequestError::Unknown(format!(
        "{name} is a learner and not up to date yet; {name} continues to catch up: run the command again later to \
         make {name} a voter"
    ))
}

/// True if the node votes and the membership is not joint: an interrupted change is repeated.
fn votes(membership: &Membership, node: u64) -> bool {
    let configs = membership.get_joint_config();
    configs.len() == 1 && configs.iter().all(|voters| voters.contains(&node))
}

/// Whether a member can have this address: `host:port`.
pub fn is_address(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

pub(super) async fn changed<R>(within: Duration, change: impl Future<Output = Changed<R>>) -> Result<(), RequestError> {
    match timeout(within, change).await {
        Ok(Ok(_)) => Ok(()),
        // Perhaps between the two steps; on a repeated request the next leader does the second step.
        Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_) | ClientWriteError::LogEntryDiscarded(_)))) => {
            Err(RequestError::Unknown("leadership moved before the change ended".into()))
        }
        Err(_) => Err(RequestError::Unknown("the change did not finish in time".into())),
        Ok(Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(refused)))) => Err(match refused {
            // The leader has only just been elected.
            ChangeMembershipError::UncommittedLeaderLog(_) => RequestError::NoLeader,
            ChangeMembershipError::InProgress(_) => {
                RequestError::Refused("another change is in progress; try again when that change is done".into())
            }
            refused => RequestError::Refused(format!("the change was refused: {refused}")),
        }),
        Ok(Err(RaftError::APIError(error))) => Err(RequestError::Refused(format!("the change was refused: {error}"))),
        Ok(Err(RaftError::Fatal(why))) => Err(RequestError::stopped(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_beyond_the_limit_is_refused_and_told_what_to_do() {
        let of = |count: usize| {
            let nodes: std::collections::BTreeMap<u64, RaftMember> =
                (0..).zip(vec![RaftMember::default(); count]).collect();
            Membership::new(vec![[0].into()], nodes).unwrap()
        };
        assert!(has_room(&of(MAX_REPLICAS - 1), "db-100").is_ok());
        let told = has_room(&of(MAX_REPLICAS), "db-100").unwrap_err().to_string();
        let expected =
            "db-100 cannot be added: this cluster has 100 replicas, which is the limit; remove a replica first";
        assert_eq!(told, expected);
    }
}
