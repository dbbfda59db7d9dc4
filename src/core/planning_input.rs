//! Facts that a planner knows beside the log: the time, the health of all replicas, the leadership, and the
//! configuration.

use crate::model::document::Status;
use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::isolation::{ImdsHealth, IsolatedView};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::Policy;
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

/// Every argument of a decision that is not in the log. The input may be wrong: `apply` checks the resulting commands.
#[derive(Clone, Debug)]
pub struct PlanningInput {
    pub now: Timestamp,
    /// The replica that decides.
    pub me: VmName,
    /// The configured members in the order of the configuration, then the other members by name; without removed
    /// replicas.
    pub members: Vec<VmName>,
    /// The members that cannot lead.
    pub learners: BTreeSet<VmName>,
    /// One entry for each replica that has ever been in contact.
    pub peers: BTreeMap<VmName, PeerHealth>,
    /// The highest cluster version that each replica's program knows, as far as reported.
    pub versions: BTreeMap<VmName, u64>,
    pub quorum: bool,
    /// Time since which `me` leads; no report arrived before.
    pub leading_since: Timestamp,
    /// `None` unless `me` leads.
    pub leader: Option<LeaderState>,
    /// `None` while `me` has a leader.
    pub isolated: Option<IsolatedView>,
    pub policy: Policy,
    pub timing: Timing,
}

/// The state of Raft on the leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderState {
    pub term: u64,
    /// How often the leader has found a quorum within the term.
    pub turn: u64,
    pub voters: Vec<VmName>,
    /// For each other voter, the send time of the last acknowledged message; voters that never acknowledged are left
    /// out.
    pub acknowledged: BTreeMap<VmName, Timestamp>,
}

/// The health of a replica, as seen by the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerHealth {
    pub reachable: bool,
    /// Time since which `reachable` has its value.
    pub since: Timestamp,
    pub imds: ImdsHealth,
    /// Time since which `imds` has its value.
    pub imds_since: Timestamp,
    /// The age of the last validated document; `None` before the first.
    pub document_age: Option<Duration>,
    /// How long the endpoint took for the last validated document.
    pub answers_in: Duration,
    /// Whether the replica may approve through the control plane: it is configured to, and has a token.
    pub can_acknowledge: bool,
    /// The number of operator requests that the replica knows.
    pub operator_seq: u64,
}

/// The cluster's timeouts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Time for an approver to record the outcome of a claim, beside the response time of the endpoint.
    pub claim_lease: Duration,
    /// Time until the document of an unreachable replica no longer counts.
    pub stale_after: Duration,
    /// Time until an event that no replica lists any more is forgotten.
    pub forget_after: Duration,
    /// Time until the slot of a member whose VM was deleted is free, if no other member has joined the group.
    pub replace_after: Duration,
    /// Time until hooks that only an unreachable replica could run are no longer waited for, if a user asked for the
    /// event, and until a replica without a leader may act alone. Half of this time makes a silent voter suspect.
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

    /// The unreachable members.
    pub fn unreachable_members(&self) -> BTreeSet<VmName> {
        self.members.iter().filter(|name| !self.reaches(name)).cloned().collect()
    }

    /// For how long a replica has been unreachable; `None` while reachable.
    pub fn unreachable_for(&self, replica: &VmName) -> Option<Duration> {
        self.peers.get(replica).filter(|contact| !contact.reachable).map(|contact| self.now.since(contact.since))
    }

    /// For how long the replica has delivered no current documents; `None` while documents are current.
    pub fn without_news_for(&self, replica: &VmName) -> Option<Duration> {
        let contact = self.peers.get(replica)?;
        let stalled = (contact.imds == ImdsHealth::Stalled).then(|| self.now.since(contact.imds_since));
        self.unreachable_for(replica).max(stalled)
    }

    /// The best replica to post an approval of the event, of the replicas that can (`SPEC.md` 6.4): a replica with
    /// the fewest claims of the event, so that a failing approver does not block the others; then unaffected before
    /// affected; then the leader.
    pub fn approver(&self, state: &State, id: &EventId) -> Option<&VmName> {
        let event = state.open_event(id)?;
        self.members.iter().filter(|name| self.can_post(state, name, id)).min_by_key(|name| {
            let claims = event.claims.iter().filter(|claim| claim.approver == **name).count();
            (claims, event.affects(name), **name != self.me)
        })
    }

    /// The approver of the event, and whether the approval is the last resort.
    pub fn approver_or_last_resort(&self, state: &State, event: &Event) -> Option<(&VmName, bool)> {
        let usual = self.approver(state, &event.announcement.id).map(|name| (name, false));
        let last_resort = || self.last_resort_approver(state, event).map(|name| (name, true));
        usual.or_else(|| last_resort().filter(|_| event.may_use_last_resort()))
    }

    /// The replica to approve the event through the control plane: no metadata endpoint of the cluster works, and the
    /// last document of the replica is recent enough to count. An unreachable replica may have an endpoint that works,
    /// and may approve the event by itself.
    fn last_resort_approver(&self, state: &State, event: &Event) -> Option<&VmName> {
        let contact = |name: &VmName| self.peers.get(name);
        let is_blind = |name| contact(name).is_some_and(|it| it.reachable && it.imds == ImdsHealth::Stalled);
        if !self.members.iter().all(is_blind) {
            return None;
        }
        let can = |name: &&VmName| {
            let listed = state.replicas.get(*name).and_then(|replica| replica.lists_event(&event.announcement.id));
            contact(name).is_some_and(|it| it.can_acknowledge) && listed == Some(&Status::Scheduled)
        };
        self.members.iter().filter(can).min_by_key(|name| (event.affects(name), **name != self.me))
    }

    fn can_post(&self, state: &State, replica: &VmName, id: &EventId) -> bool {
        let healthy =
            self.peers.get(replica).is_some_and(|contact| contact.reachable && contact.imds == ImdsHealth::Healthy);
        healthy && state.replicas.get(replica).and_then(|replica| replica.lists_event(id)) == Some(&Status::Scheduled)
    }
}

#[cfg(test)]
impl PlanningInput {
    /// The input of the first member, without reports of other members.
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
