//! What the tasks of one replica share: who it is, what the cluster agreed on, and a way to propose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::clock::{self, ClusterTime};
use super::contacts::Contacts;
use super::deeds::Deeds;
use super::isolated_requests::IsolatedRequests;
use super::journal::Journal;
use super::readiness::Latest;
use super::rounds::Rounds;
use crate::consensus::{AskError, Consensus, Members, Standing};
use allclear_core::cluster_time::Trust;
use allclear_core::model::command::{Command, Verdict};
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::Alone;
use allclear_core::model::state::State;
use allclear_core::model::suspicion::Leadership;
use allclear_core::model::time::Timestamp;
use allclear_core::ownership::Grants;
use allclear_core::policy::Policy;
use allclear_core::situation::{Lead, Situation, Timing};
use allclear_wire::log;

/// The pause before something that must be recorded is proposed again.
const PROPOSE_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub struct Here {
    pub name: VmName,
    pub cluster: String,
    /// In the order of the configuration.
    pub configured: Vec<VmName>,
    pub policy: Policy,
    /// Of its policy and groups; see `policies`.
    pub fingerprint: String,
    pub timing: Timing,
    pub time: Arc<ClusterTime>,
    pub consensus: Consensus,
    pub state: watch::Receiver<Arc<State>>,
    pub contacts: Arc<Contacts>,
    pub journal: Journal,
    /// `None` while a leader is heard.
    pub alone: watch::Sender<Option<Alone>>,
    pub alone_requests: IsolatedRequests,
    pub deeds: Arc<Deeds>,
    pub rounds: Rounds,
    pub readiness: Latest,
    /// What its configuration gives to those who dial in.
    pub grants: Grants,
}

impl Here {
    /// The state as it was applied last.
    pub fn state(&self) -> Arc<State> {
        self.state.borrow().clone()
    }

    pub fn leads(&self) -> bool {
        self.consensus.standing().borrow().leads()
    }

    /// Waits for an election that is under way, and no longer.
    pub async fn hears_a_leader_within(&self, span: Duration) -> bool {
        let mut standing = self.consensus.standing();
        let heard = standing.wait_for(Standing::hears_a_leader);
        matches!(tokio::time::timeout(span, heard).await, Ok(Ok(_)))
    }

    /// Waits until no quorum has been behind this replica for so long.
    pub async fn misses_its_quorum_for(&self, span: Duration) {
        let mut standing = self.consensus.standing();
        loop {
            if standing.wait_for(Standing::misses_its_quorum).await.is_err() {
                return std::future::pending().await;
            }
            let is_back = standing.wait_for(|standing| !standing.misses_its_quorum());
            match tokio::time::timeout(span, is_back).await.map(|is_back| is_back.is_ok()) {
                Ok(true) => {}
                Ok(false) => return std::future::pending().await,
                Err(_) => return,
            }
        }
    }

    /// Waits until one is.
    pub async fn has_its_quorum(&self) {
        if self.consensus.standing().wait_for(|standing| !standing.misses_its_quorum()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The cluster has a time, and this replica was told: deadlines may be turned into this machine's own time.
    pub fn knows_the_time(&self) -> bool {
        self.time.trust() != Trust::Unknown && (self.time.follows() || self.leads())
    }

    /// The log knows of the present leadership, and so whom the cluster is not sure of.
    pub fn knows_its_doubts(&self, state: &State) -> bool {
        let standing = self.consensus.standing().borrow().clone();
        let is_present =
            |known: &Leadership| known.term == standing.term && (!standing.leads() || known.turn == standing.turn);
        standing.quorum && state.leadership.as_ref().is_some_and(is_present)
    }

    /// Who belongs to the cluster: in the order of the configuration, then the others by name.
    pub fn members(&self) -> Vec<VmName> {
        let current = names(&self.consensus.members());
        let state = self.state();
        members(&self.configured, &current, |name| state.replicas.contains_key(name))
    }

    /// The members, and those of the configuration who are none.
    pub fn everybody(&self) -> Vec<VmName> {
        let others = names(&self.consensus.members()).into_iter().filter(|name| !self.configured.contains(name));
        self.configured.iter().cloned().chain(others).collect()
    }

    /// It is a member, or may become one: it is configured, has yet to take part, and no operator removed it.
    pub fn may_take_part(&self, name: &VmName) -> bool {
        let is_out = self.state().is_excluded(name) && !names(&self.consensus.members()).contains(name);
        self.members().contains(name) && !is_out
    }

    pub fn situation(&self) -> Situation {
        let standing = self.consensus.standing().borrow().clone();
        self.situation_under(&standing)
    }

    /// One look for all: to look again while the first is held would wait for ever beside a change of standing.
    pub(super) fn situation_under(&self, standing: &Standing) -> Situation {
        let members = self.members();
        let alone = self.alone_under(standing);
        Situation {
            now: self.time.now(),
            me: self.name.clone(),
            learners: self.consensus.members().learners.iter().map(|name| VmName::new(name)).collect(),
            contacts: self.contacts.of(&members, |steady| self.at(steady)),
            versions: self.contacts.versions(),
            members,
            quorum: standing.quorum,
            leading_since: self.contacts.leading_since().map_or(Timestamp(i64::MIN), |at| self.at(at)),
            lead: self.lead(standing),
            alone,
            policy: self.policy.clone(),
            timing: self.timing,
        }
    }

    /// What it has seen since it hears no leader. As soon as it hears one the log knows more: what was seen before would
    /// take back what others say now.
    pub(super) fn alone_under(&self, standing: &Standing) -> Option<Alone> {
        if standing.quorum { None } else { self.alone.borrow().clone() }
    }

    fn lead(&self, standing: &Standing) -> Option<Lead> {
        let acknowledged = self.consensus.acknowledged().into_iter();
        let acknowledged = acknowledged.map(|(name, at)| (VmName::new(&name), self.at(clock::steadily(at))));
        standing.leads().then(|| Lead {
            term: standing.term,
            turn: standing.turn,
            voters: self.consensus.members().voters.iter().map(|name| VmName::new(name)).collect(),
            acknowledged: acknowledged.collect(),
        })
    }

    /// A moment of the steady clock in the cluster's time, by which the machine counts.
    pub(super) fn at(&self, steady: Timestamp) -> Timestamp {
        self.time.now().minus(clock::steady().since(steady))
    }

    pub async fn propose(&self, command: &Command) -> Result<Verdict, AskError> {
        let verdict = self.consensus.propose(log::encode_command(command)).await?;
        log::decode_verdict(&verdict).map_err(|error| AskError::Stopped(error.to_string()))
    }

    /// Proposes what is only news while it is fresh.
    pub(super) fn propose_once(self: &Arc<Self>, command: Command) {
        let here = self.clone();
        tokio::spawn(async move {
            if let Err(error) = here.propose(&command).await {
                tracing::debug!(%error, command = command.as_word(), "not recorded");
            }
        });
    }

    /// Proposes until it is in the log, applied or ignored; every command can be repeated without harm.
    pub async fn record(&self, command: &Command) -> Verdict {
        loop {
            match self.propose(command).await {
                Ok(verdict) => return verdict,
                Err(error) => tracing::debug!(%error, command = command.as_word(), "not recorded yet"),
            }
            tokio::time::sleep(PROPOSE_AGAIN_AFTER).await;
        }
    }
}

fn names(members: &Members) -> BTreeSet<VmName> {
    members.voters.iter().chain(&members.learners).map(|name| VmName::new(name)).collect()
}

/// A configured replica that has yet to take part counts already: its VM is one of the cluster's. One that took part,
/// as `registered` knows, and is no member any more was removed.
fn members(configured: &[VmName], current: &BTreeSet<VmName>, registered: impl Fn(&VmName) -> bool) -> Vec<VmName> {
    let counts = |name: &&VmName| current.is_empty() || current.contains(name) || !registered(name);
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
