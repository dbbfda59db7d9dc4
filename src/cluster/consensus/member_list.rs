//! The members, and whether each member answers a hello. Also asks the other replicas for the leader while this replica
//! has no leader, for example after its removal.

use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::future::join_all;
use tonic::transport::Channel;

use super::bootstrap::HelloReply;
use super::membership_plan::may_rejoin;
use super::node::Consensus;
use super::raft_status::RaftRole;
use super::types::{Membership, RaftMember, lineage};
use allclear_wire::pb::allclear::raft::v1::Identity;

/// The members by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberNames {
    pub voters: Vec<String>,
    pub learners: Vec<String>,
}

impl MemberNames {
    /// A name with a vote is no learner, though a new disk under the name may be a learner.
    pub(super) fn of(membership: &Membership) -> Self {
        Self::by(membership, |_, _| true)
    }

    pub(super) fn as_known_by(membership: &Membership, own: &Identity) -> Self {
        Self::by(membership, |node, name| node == own.node || name != own.replica)
    }

    fn by(membership: &Membership, counts: impl Fn(u64, &str) -> bool) -> Self {
        let names = |nodes: &mut dyn Iterator<Item = u64>| -> BTreeSet<String> {
            let members = nodes.filter_map(|node| Some((node, membership.get_node(&node)?)));
            let counting = members.filter(|(node, member)| counts(*node, &member.replica));
            counting.map(|(_, member)| member.replica.clone()).collect()
        };
        let voters = names(&mut membership.voter_ids());
        let learners = &names(&mut membership.learner_ids()) - &voters;
        Self { voters: voters.into_iter().collect(), learners: learners.into_iter().collect() }
    }
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    pub replica: String,
    pub address: String,
    pub node: u64,
    pub voter: bool,
    pub leads: bool,
    /// The reason why the member does not count as reachable.
    pub unreachable: Option<String>,
}

impl Consensus {
    /// The members and which of them answer now, on any replica. Asks all members, which takes at most about a second.
    /// Uses the membership of this replica, or of the other replicas while this replica follows no leader.
    pub async fn roster(&self) -> Vec<MemberStatus> {
        let known = match self.leader_heard() {
            Some((leader, _)) => Some((self.membership(), leader)),
            None => self.led_elsewhere().await,
        };
        let (membership, leader) = known.map_or((self.membership(), None), |(known, leader)| (known, Some(leader)));
        let seats = membership.nodes().map(async |(node, member)| MemberStatus {
            replica: member.replica.clone(),
            address: member.address.clone(),
            node: *node,
            voter: membership.voter_ids().any(|voter| voter == *node),
            leads: leader == Some(*node),
            unreachable: self.look_for(*node, member).await.err(),
        });
        let mut seats = join_all(seats).await;
        seats.sort_by(|one, other| one.replica.cmp(&other.replica));
        seats
    }

    /// The leader, as known to this replica or to the other replicas.
    pub(super) async fn leader_to_ask(&self) -> Option<(u64, RaftMember)> {
        if let Some(heard) = self.leader_heard() {
            return Some(heard);
        }
        let (membership, leader) = self.led_elsewhere().await?;
        Some((leader, membership.get_node(&leader)?.clone()))
    }

    /// The leader heard within its lease, or this replica while it may lead.
    pub(super) fn leader_heard(&self) -> Option<(u64, RaftMember)> {
        let (leads, heard) = {
            let status = self.status.borrow();
            (status.role == RaftRole::Leader, status.leader.is_some())
        };
        if leads || heard { self.leader() } else { None }
    }

    /// The membership and the leader, from the answer of a member with a leader.
    async fn led_elsewhere(&self) -> Option<(Membership, u64)> {
        self.led_as_told_by(self.peers_to_ask()).await
    }

    /// The membership and the leader, asked of the voters and the founders only: when many replicas miss their leader,
    /// all of them ask, again and again.
    pub(super) async fn led_as_voters_say(&self) -> Option<(Membership, u64)> {
        let membership = self.membership();
        let voters = membership.voter_ids().filter_map(|voter| Some(membership.get_node(&voter)?.replica.as_str()));
        let voters: BTreeSet<&str> = voters.chain(self.options.founders()).collect();
        let asked = self.peers_to_ask().into_iter().filter(|(name, _)| voters.contains(name.as_str()));
        self.led_as_told_by(asked.collect()).await
    }

    async fn led_as_told_by(&self, asked: Vec<(String, Channel)>) -> Option<(Membership, u64)> {
        let answers = join_all(asked.into_iter().map(async |(name, channel)| self.send_hello(&name, channel).await));
        let led = |answer: HelloReply| {
            let (membership, leader) = (answer.membership?, answer.leader?);
            membership.get_node(&answer.greeting.node)?;
            Some((membership, leader))
        };
        answers.await.into_iter().find_map(|answer| answer.ok().and_then(led))
    }

    /// A removed replica receives no log, so a replica without a leader asks the voters whether they have a leader and
    /// a membership without this replica. The result is only reported; no decision depends on the result.
    pub(super) async fn ask_whether_removed(&self) {
        if self.leader_heard().is_some() {
            self.outside.send_replace(None);
            return;
        }
        // Before the cluster is formed, bootstrap reports the reason.
        let Ok(Some(own)) = self.stored_membership().await else { return };
        let Some((membership, _)) = self.led_as_voters_say().await else { return };
        if membership.get_node(&self.identity.node).is_some() {
            return;
        }
        let (replica, address) = (&self.identity.replica, self.own_address());
        self.stay_non_member(&if lineage(&membership) == lineage(&own) {
            format!(
                "{replica} was removed from the cluster by an operator; stop {replica}, or add the replica again with \
                 `allclear member add {replica} {address}`"
            )
        } else {
            format!(
                "the cluster was restored from another disk, and the entries of this disk must not mix with that \
                 cluster; stop {replica}, empty its data_dir and start {replica} again"
            )
        });
    }

    /// The other replicas of the configuration and of the log.
    pub(super) fn peers_to_ask(&self) -> Vec<(String, Channel)> {
        let configured = self.others().map(|(name, channel)| (name.to_owned(), channel));
        let membership = self.membership();
        let is_other = |member: &&RaftMember| {
            member.replica != self.identity.replica && self.peers.channel(&member.replica).is_none()
        };
        let logged = membership.nodes().map(|(_, member)| member).filter(is_other);
        let logged = logged.filter_map(|member| {
            let channel = self.peers.channel_or_dial(&member.replica, &member.address).ok()?;
            Some((member.replica.clone(), channel))
        });
        configured.chain(logged).collect()
    }

    /// Checks whether the member answers as the node of the log.
    async fn look_for(&self, node: u64, member: &RaftMember) -> Result<(), String> {
        if node == self.identity.node {
            return Ok(());
        }
        let name = &member.replica;
        let refusal = |other| other_disk(name, other, self.is_let_in(name, node));
        if *name == self.identity.replica {
            return Err(refusal(self.identity.node));
        }
        let channel = self.peers.channel_or_dial(name, &member.address).map_err(|error| error.to_string())?;
        let answer = self.send_hello(name, channel).await?;
        if answer.greeting.node == node {
            Ok(())
        } else if answer.is_of_another_lineage(member.lineage) {
            Err(format!(
                "the data directory of {name} is older than the restore of the cluster from one disk: stop {name} and \
                 empty its data_dir"
            ))
        } else {
            Err(refusal(answer.greeting.node))
        }
    }

    /// True if the vote of this node moves to a new disk under its name without an operator's request.
    fn is_let_in(&self, name: &str, lost: u64) -> bool {
        let membership = self.membership();
        let is_contested = self.askers.nodes(Instant::now()).get(name).is_some_and(|nodes| nodes.len() > 1);
        !is_contested && membership.voter_ids().any(|node| node == lost) && may_rejoin(membership.voter_ids().count())
    }
}

fn other_disk(name: &str, node: u64, is_let_in: bool) -> String {
    let next = if is_let_in {
        "the new node takes over the vote automatically after some time"
    } else {
        "remove the member and add the member again"
    };
    format!("{name} answers as node {node:x}: its disk was lost or replaced; {next}")
}
