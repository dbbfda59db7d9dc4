//! The Raft state of a replica: leadership, the leader heard, and the quorum epoch.

use super::{LEASE, ModelRole};
use crate::world::World;
use allclear_core::model::time::Timestamp;

/// As reported by `consensus`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ModelStatus {
    pub(crate) is_leader: bool,
    pub(crate) leader: Option<usize>,
    pub(crate) quorum: bool,
    pub(crate) term: u64,
    pub(crate) turn: u64,
}

impl ModelStatus {
    pub(crate) fn leads(&self) -> bool {
        self.is_leader && self.quorum
    }
}

/// The number of times a leader has found its quorum within its term, as counted by `consensus`.
#[derive(Default)]
pub(super) struct ModelQuorumEpochs {
    term: u64,
    count: u64,
    good_until: Option<Timestamp>,
    acknowledged: Option<Timestamp>,
}

impl ModelQuorumEpochs {
    fn look(&mut self, term: u64, acknowledged: Option<Timestamp>, now: Timestamp) -> (u64, bool) {
        if self.term != term {
            *self = Self { term, count: 0, good_until: None, acknowledged: self.acknowledged };
        }
        self.acknowledged = self.acknowledged.max(acknowledged);
        let good_until = acknowledged.map(|acknowledged| acknowledged.plus(LEASE)).filter(|until| now < *until);
        if good_until.is_some() && self.good_until.is_none_or(|until| now >= until) {
            self.count += 1;
        }
        self.good_until = good_until;
        (self.count, good_until.is_some())
    }
}

impl World {
    pub(crate) fn status(&self, vm: usize) -> ModelStatus {
        let node = &self.nodes[vm];
        let now = node.steady(self.now());
        let kept = node.kept.borrow();
        let is_member = kept.members.is_member(vm, kept.disk);
        let mut agreement = node.agreement.borrow_mut();
        if agreement.role == ModelRole::Leader {
            let acknowledged = quorum_acknowledged(&kept, &agreement, vm, now);
            let (turn, quorum) = agreement.turns.look(kept.term, acknowledged, now);
            return ModelStatus { is_leader: true, leader: Some(vm), quorum, term: kept.term, turn };
        }
        agreement.turns.good_until = None;
        let quorum =
            is_member && agreement.leader.is_some() && agreement.heard.is_some_and(|heard| now.since(heard) < LEASE);
        ModelStatus { is_leader: false, leader: agreement.leader.filter(|_| quorum), quorum, term: kept.term, turn: 0 }
    }

    /// The time of the last contact: with a leader, or, as the leader, with a quorum.
    pub(crate) fn last_contact(&self, vm: usize) -> Option<Timestamp> {
        let node = &self.nodes[vm];
        let now = node.steady(self.now());
        let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
        let is_leader = agreement.role == ModelRole::Leader;
        let as_leader = is_leader.then(|| quorum_acknowledged(&kept, &agreement, vm, now)).flatten();
        agreement.heard.max(as_leader).max(agreement.turns.acknowledged)
    }

    /// Notifies the process when its Raft state has changed.
    pub(super) fn look_at_standing(&self, vm: usize) {
        let status = self.status(vm);
        let before = std::mem::replace(&mut self.nodes[vm].agreement.borrow_mut().known, status);
        if before == status {
            return;
        }
        if status.leads() != before.leads() {
            let word = if status.leads() { "leads" } else { "does not lead any more" };
            self.tell(|| format!("{} {word} (term {}, turn {})", self.nodes[vm].name, status.term, status.turn));
        }
        if let Some(process) = self.process(vm) {
            process.signals.status.tell(&self.tasks);
        }
    }
}

/// The send time of the last message acknowledged by a quorum. A single voter needs no other replica.
fn quorum_acknowledged(
    kept: &super::ModelDisk,
    agreement: &super::Agreement,
    vm: usize,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut times: Vec<Option<Timestamp>> = kept
        .members
        .voters
        .iter()
        .map(|voter| if *voter == vm { Some(now) } else { agreement.acknowledged.get(voter).copied() })
        .collect();
    times.sort_unstable();
    times.reverse();
    times.get(kept.members.voters.len() / 2).copied().flatten()
}
