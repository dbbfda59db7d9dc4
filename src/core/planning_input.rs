//! What a planner knows beside the log: the time, the health of all replicas, the leadership, and the configuration.

use crate::model::document::Status;
use crate::model::id::{EventId, VmName};
use crate::model::isolation::{ImdsHealth, IsolatedView};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::Policy;
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

/// An argument of every decision that is not in the log. It may be wrong: `apply` checks what follows from it.
#[derive(Clone, Debug)]
pub struct PlanningInput {
    pub now: Timestamp,
    /// The replica that decides.
    pub me: VmName,
    /// Those of the configuration in its order, then the others by name; without those who were removed.
    pub members: Vec<VmName>,
    /// The members that cannot lead.
    pub learners: BTreeSet<VmName>,
    /// One for each replica that has ever been in contact.
    pub peers: BTreeMap<VmName, PeerHealth>,
    /// The highest cluster version that each replica's program knows, as far as that was told.
    pub versions: BTreeMap<VmName, u64>,
    pub quorum: bool,
    /// Since when `me` leads; nobody could tell it anything before.
    pub leading_since: Timestamp,
    /// `None` unless `me` leads.
    pub leader: Option<LeaderState>,
    /// `None` while `me` hears a leader.
    pub isolated: Option<IsolatedView>,
    pub policy: Policy,
    pub timing: Timing,
}

/// What consensus tells its leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderState {
    pub term: u64,
    /// How often it has found a quorum within the term.
    pub turn: u64,
    pub voters: Vec<VmName>,
    /// When what each other voter acknowledged last had been sent; those that never did are left out.
    pub acknowledged: BTreeMap<VmName, Timestamp>,
}

/// How a replica is doing, as the leader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerHealth {
    pub reachable: bool,
    /// Since when `reachable` is what it is.
    pub since: Timestamp,
    pub imds: ImdsHealth,
    /// Since when `imds` is what it is.
    pub imds_since: Timestamp,
    /// How old its last validated document is; `None` before the first.
    pub document_age: Option<Duration>,
    /// How long its endpoint took for that document.
    pub answers_in: Duration,
    /// How many wishes of operators it knows.
    pub operator_seq: u64,
}

/// How long the cluster waits for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// For an approver to record what became of its claim, beside what its endpoint takes.
    pub claim_lease: Duration,
    /// Until the document of a replica that is out of reach no longer counts.
    pub stale_after: Duration,
    /// Until an event that nobody can see any more is given up.
    pub forget_after: Duration,
    /// Until the slot of a member whose VM was deleted is free, where no other member has joined its group.
    pub replace_after: Duration,
    /// Until hooks that only an unreachable replica could run are no longer waited for, if a user asked for the event,
    /// and until a replica that hears no leader may act alone. Half of it makes a silent voter suspect.
    pub takeover_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            claim_lease: Duration::from_secs(5),
            stale_after: Duration::from_mins(1),
            forget_after: Duration::from_hours(2),
            replace_after: Duration::from_mins(10),
            takeover_after: Duration::from_secs(10),
        }
    }
}

impl PlanningInput {
    pub fn reaches(&self, replica: &VmName) -> bool {
        self.peers.get(replica).is_some_and(|contact| contact.reachable)
    }

    /// The members that do not answer.
    pub fn unreachable_members(&self) -> BTreeSet<VmName> {
        self.members.iter().filter(|name| !self.reaches(name)).cloned().collect()
    }

    /// For how long a replica has been out of reach; `None` while it answers.
    pub fn unreachable_for(&self, replica: &VmName) -> Option<Duration> {
        self.peers.get(replica).filter(|contact| !contact.reachable).map(|contact| self.now.since(contact.since))
    }

    /// For how long the replica's documents are no longer news; `None` while they are.
    pub fn without_news_for(&self, replica: &VmName) -> Option<Duration> {
        let contact = self.peers.get(replica)?;
        let stalled = (contact.imds == ImdsHealth::Stalled).then(|| self.now.since(contact.imds_since));
        self.unreachable_for(replica).max(stalled)
    }

    /// The replica that is best to post an approval of the event, of those that can (`behaviour.md` 6): one with the
    /// fewest claims of it, so that one that fails does not stand in the way of the others; then unaffected before
    /// affected; then the leader.
    pub fn approver(&self, state: &State, id: &EventId) -> Option<&VmName> {
        let event = state.open_event(id)?;
        self.members.iter().filter(|name| self.can_post(state, name, id)).min_by_key(|name| {
            let claims = event.claims.iter().filter(|claim| claim.approver == **name).count();
            (claims, event.affects(name), **name != self.me)
        })
    }

    fn can_post(&self, state: &State, replica: &VmName, id: &EventId) -> bool {
        let healthy =
            self.peers.get(replica).is_some_and(|contact| contact.reachable && contact.imds == ImdsHealth::Healthy);
        healthy && state.replicas.get(replica).and_then(|replica| replica.lists_event(id)) == Some(&Status::Scheduled)
    }
}

#[cfg(test)]
impl PlanningInput {
    /// The input of the first member, which has heard of nobody.
    pub(crate) fn of_members(members: &[VmName], now: Timestamp) -> Self {
        Self {
            now,
            me: members[0].clone(),
            members: members.to_vec(),
            learners: BTreeSet::new(),
            peers: BTreeMap::new(),
            versions: BTreeMap::new(),
            quorum: true,
            leading_since: Timestamp(0),
            leader: None,
            isolated: None,
            policy: Policy::default(),
            timing: Timing::default(),
        }
    }
}
