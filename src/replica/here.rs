//! What the tasks of one replica share: who it is, what the cluster agreed on, and a way to propose.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::clock::{self, ClusterTime};
use super::contacts::Contacts;
use super::journal::Journal;
use crate::consensus::{Consensus, ProposeError};
use crate::machine::command::{Command, Verdict};
use crate::machine::id::VmName;
use crate::machine::policy::Policy;
use crate::machine::situation::{Lead, Situation, Timing};
use crate::machine::state::State;
use crate::machine::takeover::Alone;
use crate::machine::time::Timestamp;
use crate::wire::log;

/// The pause before something that must be recorded is proposed again.
const PROPOSE_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub struct Here {
    pub name: VmName,
    pub cluster: String,
    /// In the order of the configuration.
    pub members: Vec<VmName>,
    pub policy: Policy,
    pub timing: Timing,
    pub time: Arc<ClusterTime>,
    pub consensus: Consensus,
    pub state: watch::Receiver<Arc<State>>,
    pub contacts: Arc<Contacts>,
    pub journal: Journal,
    /// `None` while a leader is heard.
    pub alone: watch::Sender<Option<Alone>>,
}

impl Here {
    /// The state as it was applied last.
    pub fn state(&self) -> Arc<State> {
        self.state.borrow().clone()
    }

    pub fn leads(&self) -> bool {
        self.consensus.standing().borrow().leads()
    }

    /// The cluster's time is no guess: deadlines may be turned into this machine's own time.
    pub fn knows_the_time(&self) -> bool {
        self.time.follows() || self.leads()
    }

    pub fn situation(&self) -> Situation {
        Situation {
            now: self.time.now(),
            me: self.name.clone(),
            members: self.members.clone(),
            contacts: self.contacts.of(&self.members, |steady| self.at(steady)),
            quorum: self.consensus.standing().borrow().quorum,
            leading_since: self.contacts.leading_since().map_or(Timestamp(i64::MIN), |at| self.at(at)),
            lead: self.lead(),
            alone: self.alone.borrow().clone(),
            policy: self.policy.clone(),
            timing: self.timing,
        }
    }

    fn lead(&self) -> Option<Lead> {
        let standing = self.consensus.standing().borrow().clone();
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

    pub async fn propose(&self, command: &Command) -> Result<Verdict, ProposeError> {
        let verdict = self.consensus.propose(log::encode_command(command)).await?;
        log::decode_verdict(&verdict).map_err(|error| ProposeError::Fatal(error.to_string()))
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
