//! Forms a new cluster. The configured replicas send hello to each other. When all replicas report that they belong to
//! no cluster, the first in the order of the configuration forms the cluster with the future voters. From then on the
//! log decides, and the leader adds the other replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;
use tonic::transport::Channel;

use super::codec;
use super::membership_plan::{left_behind, may_rejoin};
use super::node::Consensus;
use super::options::MAX_MESSAGE_BYTES;
use super::peers::said;
use super::types::{Membership, RaftMember, lineage};
use allclear_core::model::command::bounded;
use allclear_wire::pb::allclear::cluster::v1 as pb;
use pb::consensus_client::ConsensusClient;

/// The interval of hello calls, but at least `GREET_EACH` times the number of replicas: all replicas greet the same
/// few.
const GREET_EVERY: Duration = Duration::from_millis(200);
const GREET_EACH: Duration = Duration::from_millis(20);
const GREET_WITHIN: Duration = Duration::from_millis(800);
/// The wait for future learners: a replica that cannot start must not delay the cluster.
const LEARNERS_WITHIN: Duration = Duration::from_secs(10);

/// The answer of one configured replica.
#[derive(Clone)]
pub(super) struct HelloReply {
    pub(super) greeting: pb::Greeting,
    pub(super) membership: Option<Membership>,
    /// The leader of the answering replica.
    pub(super) leader: Option<u64>,
    /// The reason why this replica is not let in, according to the answering replica.
    pub(super) refused: Option<String>,
}

impl HelloReply {
    /// True if the replica belongs, or belonged, to an unrelated cluster.
    pub(super) fn shares_no_node_with(&self, ours: &Membership) -> bool {
        self.membership.as_ref().is_some_and(|theirs| theirs.nodes().all(|(node, _)| ours.get_node(node).is_none()))
    }

    fn leader_by_name(&self) -> Option<String> {
        Some(self.membership.as_ref()?.get_node(&self.leader?)?.replica.clone())
    }

    /// True if the replica has the log of another generation: the cluster was restored from one disk meanwhile.
    pub(super) fn is_of_another_lineage(&self, ours: u64) -> bool {
        self.membership.as_ref().is_some_and(|membership| lineage(membership) != ours)
    }
}

impl Consensus {
    pub(crate) fn greeting(&self) -> pb::Greeting {
        pb::Greeting {
            cluster: self.identity.cluster.clone(),
            replica: self.identity.replica.clone(),
            node: self.identity.node,
            replicas: self.options.replicas.iter().map(|(name, _)| name.clone()).collect(),
            signs_off: false,
        }
    }

    /// The membership in the log; `None` before this replica is formed. Asks openraft itself: the published metrics may
    /// lag behind right after a start.
    pub(crate) async fn stored_membership(&self) -> Result<Option<Membership>, String> {
        let read = self.raft.with_raft_state(|state| state.membership_state.effective().membership().clone());
        let membership = read.await.map_err(|error| error.to_string())?;
        let formed = membership.nodes().next().is_some();
        Ok(formed.then_some(membership))
    }

    /// Runs until this replica is formed, or stopped.
    pub(crate) async fn bootstrap(self) {
        let patience = Instant::now() + LEARNERS_WITHIN;
        // The leader has to know the asking replica, also a leader that did not form the cluster.
        let mut leader = None;
        loop {
            match self.stored_membership().await {
                Err(_) => return,
                Ok(Some(_)) => break,
                Ok(None) => {}
            }
            let greeted =
                self.others().filter(|(name, _)| self.options.greets(name) || leader.as_deref() == Some(*name));
            let asked = greeted.map(async |(name, channel)| (name.to_owned(), self.send_hello(name, channel).await));
            let answers = join_all(asked).await;
            leader = answers.iter().find_map(|(_, answer)| answer.as_ref().ok()?.leader_by_name());
            let founders: Vec<&str> = self.options.founders().collect();
            let all: Vec<&str> = self.options.replicas.iter().map(|(name, _)| name.as_str()).collect();
            let needed = if Instant::now() < patience { &all } else { &founders };
            let rejoin_after = self.options.rejoin_after;
            let expected = Expected { address: self.own_address(), founders: &founders, needed, rejoin_after };
            match next(&self.greeting(), &expected, answers) {
                Ok(nodes) => self.initialize(nodes).await,
                Err(reason) => self.stay_non_member(&reason),
            }
            let replicas = u32::try_from(self.options.replicas.len()).unwrap_or(u32::MAX);
            sleep(GREET_EVERY.max(GREET_EACH.saturating_mul(replicas))).await;
        }
        self.outside.send_replace(None);
    }

    /// The configured address of this replica.
    pub(super) fn own_address(&self) -> &str {
        self.options.address_of(&self.identity.replica).unwrap_or_default()
    }

    pub(super) fn others(&self) -> impl Iterator<Item = (&str, Channel)> {
        let names = self.options.replicas.iter().map(|(name, _)| name.as_str());
        names.filter(|name| *name != self.identity.replica).filter_map(|name| Some((name, self.peers.channel(name)?)))
    }

    /// Sets the reason, bounded in length: the text may contain the answer of any program at another replica's address.
    pub(super) fn stay_non_member(&self, reason: &str) {
        self.outside.send_replace(Some(bounded(reason)));
    }

    /// Sends a hello to a replica; without an answer, returns the reason.
    pub(super) async fn send_hello(&self, name: &str, channel: Channel) -> Result<HelloReply, String> {
        self.send_hello_as(self.greeting(), name, channel).await
    }

    pub(super) async fn send_hello_as(
        &self,
        own: pb::Greeting,
        name: &str,
        channel: Channel,
    ) -> Result<HelloReply, String> {
        let mut client = ConsensusClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let request = pb::GreetRequest { greeting: Some(own) };
        let response = match timeout(GREET_WITHIN, client.greet(request)).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) if [Code::FailedPrecondition, Code::PermissionDenied].contains(&status.code()) => {
                return Err(status.message().into());
            }
            Ok(Err(status)) => return Err(format!("{name} does not answer: {}", said(&status))),
            Err(_) => {
                let why = self.peers.last_dial_error(name).map(|why| format!(": {why}")).unwrap_or_default();
                return Err(format!("{name} does not answer{why}"));
            }
        };
        let greeting = response.greeting.unwrap_or_default();
        if greeting.cluster != self.identity.cluster || greeting.replica != name {
            self.peers.mark_wrong_peer(name);
            return Err(format!(
                "at the address of {name} answers {} of cluster {}; check cluster.replicas",
                greeting.replica, greeting.cluster
            ));
        }
        let membership = response.membership.map(codec::membership).transpose();
        let membership = membership.map_err(|error| format!("{name} answers with an unreadable message: {error}"))?;
        Ok(HelloReply { greeting, membership, leader: response.leader, refused: response.refused })
    }

    async fn initialize(&self, nodes: BTreeMap<u64, String>) {
        let member = |(node, replica): (u64, String)| {
            let address = self.options.address_of(&replica).unwrap_or_default().to_owned();
            (node, RaftMember { replica, address, lineage: 0 })
        };
        let members: BTreeMap<u64, RaftMember> = nodes.into_iter().map(member).collect();
        tracing::info!(members = members.len(), "cluster bootstrap started");
        if let Err(error) = self.raft.initialize(members).await {
            self.stay_non_member(&format!("the cluster could not be formed: {error}"));
        }
    }
}

/// The expectations of a replica before the cluster is formed.
pub(super) struct Expected<'a> {
    /// The address of this replica.
    pub(super) address: &'a str,
    /// The future voters.
    pub(super) founders: &'a [&'a str],
    /// The replicas that have to answer.
    pub(super) needed: &'a [&'a str],
    pub(super) rejoin_after: Duration,
}

/// Decides from the answers of the other configured replicas. Returns the nodes of the founders, the future voters, if
/// this replica forms the cluster now, and otherwise the reason for waiting. A needed replica without an answer is
/// named with the reason.
pub(super) fn next(
    own: &pb::Greeting,
    Expected { address, founders, needed, rejoin_after }: &Expected<'_>,
    answers: Vec<(String, Result<HelloReply, String>)>,
) -> Result<BTreeMap<u64, String>, String> {
    let mut heard = Vec::new();
    let mut silent = None;
    for (name, answer) in answers {
        match answer {
            Ok(answer) => heard.push(answer),
            Err(why) if needed.contains(&name.as_str()) => silent = silent.or(Some(why)),
            Err(_) => {}
        }
    }
    if heard.iter().any(|answer| answer.membership.is_some()) {
        return Err(met_formed(own, address, *rejoin_after, &heard));
    }
    if let Some(other) = heard.iter().map(|answer| &answer.greeting).find(|other| other.replicas != own.replicas) {
        let (theirs, ours) = (other.replicas.join(", "), own.replicas.join(", "));
        return Err(format!(
            "{} lists the replicas {theirs}, and this replica lists {ours}; make cluster.replicas equal on all \
             replicas, in the same order",
            other.replica
        ));
    }
    if let Some(silent) = silent {
        return Err(format!("waiting to form the cluster: {silent}"));
    }
    if let Some(first) = own.replicas.first().filter(|first| **first != own.replica) {
        return Err(format!("waiting for {first} to form the cluster"));
    }
    let all: Vec<&pb::Greeting> = heard.iter().map(|answer| &answer.greeting).chain([own]).collect();
    let nodes: BTreeSet<u64> = all.iter().map(|greeting| greeting.node).collect();
    if nodes.len() != all.len() {
        return Err("two replicas have the same node id; remove the copied data_dir".into());
    }
    let founders = all.into_iter().filter(|greeting| founders.contains(&greeting.replica.as_str()));
    Ok(founders.map(|greeting| (greeting.node, greeting.replica.clone())).collect())
}

/// The reason for waiting when other replicas are formed: they decide, and this replica never replaces an old vote.
fn met_formed(own: &pb::Greeting, address: &str, rejoin_after: Duration, heard: &[HelloReply]) -> String {
    let memberships: Vec<&Membership> = heard.iter().filter_map(|answer| answer.membership.as_ref()).collect();
    if let Some(refused) = heard.iter().find_map(|answer| answer.refused.clone()) {
        return refused;
    }
    if memberships.iter().any(|membership| membership.get_node(&own.node).is_some()) {
        return "waiting for the leader of the formed cluster".into();
    }
    let replica = &own.replica;
    let old_voter = memberships.iter().find_map(|membership| {
        Some((left_behind(membership, replica, own.node)?, may_rejoin(membership.voter_ids().count())))
    });
    if let Some((node, may_rejoin)) = old_voter {
        let known = format!(
            "the cluster knows {replica} as node {node:x}, but this data_dir is node {:x}: the disk was lost or replaced",
            own.node
        );
        return if may_rejoin {
            let seconds = rejoin_after.as_secs();
            format!(
                "{known}; the new disk receives the log as soon as node {node:x} is unreachable, and takes over the \
                 vote automatically when node {node:x} has been unreachable for {seconds} s, or at once after \
                 `allclear member remove {replica}` and `allclear member add {replica} {address}` on another replica"
            )
        } else {
            format!(
                "{known}, and the old vote must not return: the remaining one of two voters decides nothing alone; if \
                 the old disk is permanently lost, stop the other replica, run `allclear member restore` on its VM \
                 and start the other replica again; that replica then adds this replica automatically"
            )
        };
    }
    if heard.iter().any(|answer| answer.membership.is_some() && answer.greeting.replicas.contains(replica)) {
        return "waiting for the leader of the formed cluster to add this replica".into();
    }
    format!("the cluster is formed without {replica}; run `allclear member add {replica} {address}`")
}

#[cfg(test)]
mod tests;
