//! The shared context of one replica's tasks: its identity, its clocks, and the planning input.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use super::process::ProcessState;
use crate::event_queue::QueuedEvent;
use crate::raft_model::ModelStatus;
use crate::tasks::{SignalChanges, first};
use crate::world::World;
use allclear_core::cluster_time::{Clocks, Trust};
use allclear_core::model::id::VmName;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::peer_table::ImdsReport;
use allclear_core::planning_input::{LeaderState, PeerHealth, PlanningInput};

#[derive(Clone)]
pub(crate) struct ModelContext {
    pub(crate) world: Rc<World>,
    pub(crate) me: usize,
    pub(crate) process: Rc<ProcessState>,
}

impl ModelContext {
    pub(super) fn name(&self) -> &VmName {
        &self.world.nodes[self.me].name
    }

    pub(crate) fn steady(&self) -> Timestamp {
        self.world.nodes[self.me].steady(self.world.now())
    }

    pub(super) fn clocks(&self) -> Clocks {
        self.world.nodes[self.me].clocks(self.world.now())
    }

    /// The cluster's time.
    pub(crate) fn time(&self) -> Timestamp {
        self.process.time.borrow().now(self.clocks())
    }

    /// A timestamp of the monotonic clock in the cluster's time.
    pub(super) fn at(&self, steady: Timestamp) -> Timestamp {
        self.time().minus(self.steady().since(steady))
    }

    /// The state applied on this replica.
    pub(crate) fn state(&self) -> Rc<State> {
        self.process.state()
    }

    pub(crate) fn status(&self) -> ModelStatus {
        self.world.status(self.me)
    }

    pub(super) fn health(&self) -> ImdsReport {
        self.process.sight.borrow().health(self.steady())
    }

    pub(super) fn knows_the_time(&self) -> bool {
        self.trust() != Trust::Unknown && (self.process.time.borrow().follows() || self.status().leads())
    }

    pub(super) fn trust(&self) -> Trust {
        self.process.time.borrow().trust()
    }

    /// In the cluster's time.
    pub(crate) fn leads_since(&self) -> Option<Timestamp> {
        self.process.contacts.borrow().leading_since().map(|at| self.at(at))
    }

    /// Whether the replica is a voter, as far as known on its disk.
    pub(super) fn takes_part(&self) -> bool {
        let kept = self.world.nodes[self.me].kept.borrow();
        kept.members.is_voter(self.me, kept.disk)
    }

    pub(super) fn voters(&self) -> Vec<VmName> {
        let members = self.world.nodes[self.me].kept.borrow().members.clone();
        members.voters.iter().map(|voter| self.world.nodes[*voter].name.clone()).collect()
    }

    pub(super) fn members(&self) -> Vec<VmName> {
        let members = self.world.nodes[self.me].kept.borrow().members.clone();
        members.all().map(|member| self.world.nodes[member].name.clone()).collect()
    }

    pub(super) fn contacts(&self, members: &[VmName]) -> BTreeMap<VmName, PeerHealth> {
        let contacts = self.process.contacts.borrow();
        contacts.health_of_members(self.steady(), members, |steady| self.at(steady))
    }

    pub(crate) fn planning_input(&self) -> PlanningInput {
        let (status, members, voters) = (self.status(), self.members(), self.voters());
        let leading_since = self.process.contacts.borrow().leading_since();
        PlanningInput {
            now: self.time(),
            me: self.name().clone(),
            peers: self.contacts(&members),
            learners: members.iter().filter(|member| !voters.contains(member)).cloned().collect(),
            versions: BTreeMap::new(),
            quorum: status.quorum,
            leading_since: leading_since.map_or(Timestamp(i64::MIN), |at| self.at(at)),
            leader: status.leads().then(|| self.lead(status, voters)),
            members,
            isolated: self.process.alone.borrow().clone().filter(|_| !status.quorum),
            policy: self.world.scenario.policy.clone(),
            timing: self.world.scenario.timing,
        }
    }

    fn lead(&self, status: ModelStatus, voters: Vec<VmName>) -> LeaderState {
        let agreement = self.world.nodes[self.me].agreement.borrow();
        let acknowledged = agreement.acknowledged.iter();
        let acknowledged =
            acknowledged.map(|(voter, sent)| (self.world.nodes[*voter].name.clone(), self.at(*sent))).collect();
        LeaderState { term: status.term, turn: status.turn, voters, acknowledged }
    }

    /// Waits for a change, or for at most this duration if there is work anyway.
    pub(super) async fn wait<const N: usize>(&self, news: SignalChanges<'_, N>, at_most: Option<Duration>) {
        let come = news.come(&self.world.tasks);
        match at_most {
            Some(span) => drop(first(come, self.sleep(span)).await),
            None => come.await,
        }
    }

    /// By the monotonic clock of this machine.
    pub(crate) async fn sleep(&self, span: Duration) {
        let target = self.steady().plus(span);
        let mut woken_at = None;
        poll_fn(|_| {
            let now = self.steady();
            if now >= target {
                return Poll::Ready(());
            }
            let wake_at = self.world.now().plus(target.since(now));
            if let Some(current) = self.world.tasks.current()
                && woken_at.is_none_or(|at| at < wake_at)
            {
                woken_at = Some(wake_at);
                self.world.put_in(target.since(now), QueuedEvent::Wake(current));
            }
            Poll::Pending
        })
        .await;
    }
}
