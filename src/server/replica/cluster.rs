//! This replica's handle on its cluster: the committed state, the cluster's time, the members, and a way to propose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::clock::{self, ClusterClock};
pub use crate::consensus::is_address;
use crate::consensus::{Consensus, MemberNames, RaftStatus, RequestError};
use allclear_core::cluster_time::Trust;
use allclear_core::model::command::{ApplyResult, Command};
use allclear_core::model::id::VmName;
use allclear_core::model::reconcile_state::Leadership;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::ownership::Grants;
use allclear_core::planning_input::Timing;
use allclear_core::policy::Policy;
use allclear_wire::log;

/// The pause before a mandatory command is proposed again.
const PROPOSE_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The facts of the configuration about this replica.
pub struct NodeFacts {
    pub name: VmName,
    pub cluster: String,
    /// The replicas in the order of the configuration.
    pub configured: Vec<VmName>,
    pub policy: Policy,
    /// A digest of the policy and the groups; see `policy_fingerprints`.
    pub fingerprint: String,
    pub timing: Timing,
    /// The permissions of session workloads.
    pub grants: Grants,
    /// The path of the operator socket, if not the usual path.
    pub endpoint: Option<String>,
    /// The command that finds a fault of this replica, with its configuration and as its user.
    pub doctor: String,
}

/// A handle on the cluster, with which a task reads the committed state, proposes commands, and uses the consensus.
pub struct ClusterHandle {
    pub node: NodeFacts,
    pub consensus: Consensus,
    /// The last applied state, and the changes of the state.
    pub committed: watch::Receiver<Arc<State>>,
    pub time: Arc<ClusterClock>,
}

impl ClusterHandle {
    /// The last applied state.
    pub fn state(&self) -> Arc<State> {
        self.committed.borrow().clone()
    }

    pub fn leads(&self) -> bool {
        self.consensus.status().borrow().leads()
    }

    /// Waits for an election under way, and no longer.
    pub async fn wait_for_leader(&self, within: Duration) -> bool {
        let mut status = self.consensus.status();
        let found = status.wait_for(RaftStatus::has_leader);
        matches!(tokio::time::timeout(within, found).await, Ok(Ok(_)))
    }

    /// Waits until this replica has been without a quorum for `span`.
    pub async fn wait_quorum_lost(&self, span: Duration) {
        let mut status = self.consensus.status();
        loop {
            if status.wait_for(RaftStatus::lacks_quorum).await.is_err() {
                return std::future::pending().await;
            }
            let is_back = status.wait_for(|status| !status.lacks_quorum());
            match tokio::time::timeout(span, is_back).await.map(|is_back| is_back.is_ok()) {
                Ok(true) => {}
                Ok(false) => return std::future::pending().await,
                Err(_) => return,
            }
        }
    }

    /// Waits until this replica has a quorum.
    pub async fn wait_quorum(&self) {
        if self.consensus.status().wait_for(|status| !status.lacks_quorum()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The cluster has a time, known to this replica: deadlines may be converted to this machine's own time.
    pub fn has_cluster_time(&self) -> bool {
        self.time.trust() != Trust::Unknown && (self.time.follows() || self.leads())
    }

    /// The log knows the present leadership, and so the unreconciled replicas.
    pub fn reconciliation_known(&self, state: &State) -> bool {
        let status = self.consensus.status().borrow().clone();
        let is_present =
            |known: &Leadership| known.term == status.term && (!status.leads() || known.turn == status.turn);
        status.quorum && state.leadership.as_ref().is_some_and(is_present)
    }

    /// The members of the cluster: in the order of the configuration, then other members by name.
    pub fn members(&self) -> Vec<VmName> {
        let current = names(&self.consensus.members());
        let state = self.state();
        members(&self.node.configured, &current, |name| state.replicas.contains_key(name) || state.is_excluded(name))
    }

    /// The members, and the configured replicas that are not members.
    pub fn members_and_configured(&self) -> Vec<VmName> {
        let others = names(&self.consensus.members()).into_iter().filter(|name| !self.node.configured.contains(name));
        self.node.configured.iter().cloned().chain(others).collect()
    }

    /// The replica is a member, or may become a member: configured, yet to take part, and not removed by an operator.
    pub fn may_take_part(&self, name: &VmName) -> bool {
        let is_out = self.state().is_excluded(name) && !names(&self.consensus.members()).contains(name);
        self.members().contains(name) && !is_out
    }

    /// A monotonic timestamp in the cluster's time, by which the core counts.
    pub(super) fn at(&self, steady: Timestamp) -> Timestamp {
        self.time.now().minus(clock::monotonic().since(steady))
    }

    pub async fn propose(&self, command: &Command) -> Result<ApplyResult, RequestError> {
        let verdict = self.consensus.propose(log::encode_command(command)).await?;
        log::decode_verdict(&verdict).map_err(|error| RequestError::Stopped(error.to_string()))
    }

    /// Proposes a command a single time: its content is useful only while fresh.
    pub(super) fn propose_once(self: &Arc<Self>, command: Command) {
        let cluster = self.clone();
        tokio::spawn(async move {
            if let Err(error) = cluster.propose(&command).await {
                tracing::debug!(%error, command = command.as_str(), "command not recorded");
            }
        });
    }

    /// Proposes until the command is in the log, applied or rejected; every command can be repeated without harm.
    pub async fn record(&self, command: &Command) -> ApplyResult {
        loop {
            match self.propose(command).await {
                Ok(verdict) => return verdict,
                Err(error) => tracing::debug!(%error, command = command.as_str(), "command not recorded yet"),
            }
            tokio::time::sleep(PROPOSE_AGAIN_AFTER).await;
        }
    }
}

fn names(members: &MemberNames) -> BTreeSet<VmName> {
    members.voters.iter().chain(&members.learners).map(|name| VmName::new(name)).collect()
}

/// A configured replica that has yet to take part counts already: its VM belongs to the cluster. A replica that took
/// part, as the log shows, and is no member any more was removed.
fn members(configured: &[VmName], current: &BTreeSet<VmName>, took_part: impl Fn(&VmName) -> bool) -> Vec<VmName> {
    let counts = |name: &&VmName| current.is_empty() || current.contains(name) || !took_part(name);
    let others = current.iter().filter(|name| !configured.contains(name));
    configured.iter().filter(counts).chain(others).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<VmName> {
        text.split_whitespace().map(VmName::new).collect()
    }

    fn shown(configured: &str, current: &str, registered: &str) -> Vec<VmName> {
        let registered = named(registered);
        members(&named(configured), &named(current).into_iter().collect(), |name| registered.contains(name))
    }

    #[test]
    fn those_of_the_configuration_stand_in_its_order_and_the_others_behind_them() {
        assert_eq!(shown("c a b", "a b c", "a b c"), named("c a b"));
        assert_eq!(shown("c b", "a b c d", "a b c d"), named("c b a d"));
    }

    #[test]
    fn who_was_removed_is_no_member_and_who_has_yet_to_come_is() {
        assert_eq!(shown("a b c", "a b", "a b c"), named("a b"));
        assert_eq!(shown("a b c", "a b", "a b"), named("a b c"));
    }

    #[test]
    fn before_the_cluster_is_known_everybody_configured_is_a_member() {
        assert_eq!(shown("a b", "", "a b"), named("a b"));
    }
}
