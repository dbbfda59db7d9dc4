//! Knowledge of the leader, and of an isolated replica, beside the log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::core::model::id::VmName;
use allclear::core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::isolation::{IsolatedView, PeerAnswer};
use allclear::core::model::time::Timestamp;
use allclear::core::planning_input::{LeaderState, PeerHealth, PlanningInput, Timing};
use allclear::core::policy::Policy;

use crate::mutant::Mutant;
use crate::world::{Cluster, World, name};

impl World {
    fn planning_input(&self, cluster: &Cluster, me: usize) -> PlanningInput {
        let timing = Timing { stale_after: Duration::from_hours(1), ..Timing::default() };
        PlanningInput {
            now: self.now(),
            me: name(me),
            members: cluster.members(),
            learners: BTreeSet::new(),
            versions: BTreeMap::new(),
            peers: BTreeMap::new(),
            quorum: false,
            leading_since: Timestamp(i64::MIN),
            leader: None,
            isolated: None,
            policy: Policy { user_budget: cluster.budget, prepare_ahead: Duration::from_hours(1), ..Policy::default() },
            timing,
        }
    }

    pub(crate) fn situation_of_leader(&self, cluster: &Cluster, leader: usize) -> PlanningInput {
        let contact = |replica: usize| PeerHealth {
            reachable: self.connected(replica),
            since: self.replicas[replica].alone_since,
            imds: ImdsHealth::Healthy,
            imds_since: Timestamp(0),
            document_age: Some(Duration::ZERO),
            answers_in: Duration::ZERO,
            operator_seq: 0,
            can_acknowledge: false,
        };
        let contacts = (0..cluster.replicas).map(|replica| (name(replica), contact(replica))).collect();
        let others = (0..cluster.replicas).filter(|replica| *replica != leader);
        let acknowledged = others.filter_map(|replica| Some((name(replica), self.acknowledged(replica)?)));
        let lead = LeaderState {
            term: self.term,
            turn: self.turn,
            voters: cluster.members(),
            acknowledged: acknowledged.collect(),
        };
        let leading_since = self.leading_since;
        PlanningInput {
            peers: contacts,
            quorum: true,
            leading_since,
            leader: Some(lead),
            ..self.planning_input(cluster, leader)
        }
    }

    fn acknowledged(&self, replica: usize) -> Option<Timestamp> {
        match self.replicas[replica].acknowledged {
            None => Some(self.now()),
            Some((term, at)) => (term == self.term).then_some(at),
        }
    }

    /// Planning input of `core::procedure::isolated_approval`; `None` while the replica follows a leader.
    pub(crate) fn situation_alone(&self, cluster: &Cluster, me: usize) -> Option<PlanningInput> {
        let local = &self.replicas[me];
        if !local.up || self.has_contact(me) {
            return None;
        }
        let answer = PeerAnswer { leader: None, channel: ImdsHealth::Healthy };
        let others = (0..cluster.replicas).filter(|other| *other != me && self.connected(*other) && !local.cut);
        let alone = IsolatedView {
            since: local.alone_since,
            voters: cluster.members(),
            reached: others.map(|other| (name(other), answer.clone())).collect(),
            document: Some(self.document(cluster, me)),
            seen_since: self.seen_since(me),
            log_time: self.now(),
            tail: Vec::new(),
            readiness: BTreeMap::new(),
            journal: local.journal.clone(),
        };
        Some(PlanningInput { isolated: Some(alone), ..self.planning_input(cluster, me) })
    }

    /// The entry which the replica would write into its journal now.
    pub(crate) fn takeover(&self, cluster: &Cluster, me: usize) -> Option<JournalEntry> {
        let local = &self.replicas[me];
        let input = self.situation_alone(cluster, me)?;
        let is_silent = self.now().since(local.alone_since) >= input.timing.takeover_after;
        if !is_silent || local.alone.is_some() {
            return None;
        }
        let applied = local.behind.as_ref().and_then(|behind| behind.applied.as_ref());
        let state = applied.filter(|_| cluster.mutant == Mutant::TailIgnored).unwrap_or_else(|| self.known(me));
        let id = cluster.mutant.takeover(state, &input)?;
        let alone = input.isolated.as_ref()?;
        let last = alone.journal.iter().map(|entry| entry.approval.at).max();
        let takeover = IsolatedApproval {
            approver: input.me.clone(),
            at: last.map_or(input.now, |last| input.now.max(last.plus(Duration::from_millis(1)))),
            alone_since: alone.since,
            out_of_reach: alone.unreachable_voters(&input.me),
            requested_by: None,
            outcome: None,
            recorded: None,
        };
        Some(JournalEntry { announcement: alone.listed(&id)?.clone(), approval: takeover })
    }

    /// Voters which have not reconciled; none once every voter has reconciled.
    pub(crate) fn suspects(&self) -> Vec<&VmName> {
        self.log.suspects().collect()
    }
}
