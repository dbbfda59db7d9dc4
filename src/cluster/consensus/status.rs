//! Keeps the Raft status of this replica and publishes its changes; sends heartbeats as the leader.

use std::time::Instant;

use openraft::rt::WatchReceiver as _;
use openraft::{RaftMetrics, ServerState};
use tokio::time::sleep_until;

use super::heartbeat::{late, may_elect};
use super::node::Consensus;
use super::quorum_epochs::QuorumEpochs;
use super::raft_status::{RaftRole, RaftStatus};
use super::types::Types;

impl Consensus {
    /// Keeps the Raft status and sends heartbeats as a leader. Runs until the replica stops.
    pub(crate) async fn watch_standing(self) {
        let every = self.options.timing.heartbeat;
        let (mut metrics, mut published) = (self.raft.metrics(), self.published.clone());
        let (mut heard, mut next_beat) = (self.heard.subscribe(), Instant::now());
        loop {
            self.update_status();
            let (now, state) = (Instant::now(), metrics.borrow_watched().state);
            self.raft.runtime_config().tick(may_elect(state, *heard.borrow_and_update(), every));
            if state == ServerState::Leader && next_beat <= now {
                if self.raft.trigger().heartbeat().await.is_err() {
                    break;
                }
                next_beat = now + every;
            }
            // A lease expires without a notification.
            let look = if state == ServerState::Leader { next_beat } else { now + late(every) };
            let open = tokio::select! {
                changed = metrics.changed() => changed.is_ok(),
                changed = published.changed() => changed.is_ok(),
                changed = heard.changed() => changed.is_ok(),
                () = sleep_until(look.into()) => true,
                () = self.stop.cancelled() => false,
            };
            if !open {
                break;
            }
        }
        let reason = self.stopped().unwrap_or_else(|| "shut down".into());
        let term = self.status.borrow().term;
        self.set_status(RaftStatus {
            term,
            applied: self.applied(),
            ..RaftStatus::outside(&format!("stopped: {reason}"))
        });
    }

    fn applied(&self) -> u64 {
        self.published.borrow().unwrap_or(0)
    }

    pub(crate) fn update_status(&self) {
        let mut turns = self.turns();
        self.set_status(self.current_standing(&mut turns));
    }

    fn set_status(&self, now: RaftStatus) {
        self.status.send_if_modified(|known| {
            if (&known.role, &known.leader, known.quorum) != (&now.role, &now.leader, now.quorum) {
                let RaftStatus { role, leader, term, quorum, .. } = &now;
                tracing::info!(?role, leader, term, quorum, "raft state changed");
            }
            let leader_since = if (&known.leader, known.term) == (&now.leader, now.term) {
                known.leader_since
            } else {
                now.leader_since
            };
            let now = RaftStatus { leader_since, ..now };
            let changed = *known != now;
            *known = now;
            changed
        });
    }

    fn current_standing(&self, turns: &mut QuorumEpochs) -> RaftStatus {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let lease = self.options.timing.lease();
        let (turn, quorum) = match metrics.state {
            ServerState::Leader => {
                let acknowledged = self.quorum_acknowledged(&metrics);
                turns.record_acknowledgement(metrics.current_term, acknowledged, Instant::now(), lease)
            }
            ServerState::Learner | ServerState::Follower | ServerState::Candidate | ServerState::Shutdown => {
                turns.end();
                let heard = self.heard.borrow().is_some_and(|heard| heard.elapsed() < lease);
                (0, metrics.current_leader.is_some() && heard)
            }
        };
        let role = self.role(&metrics, quorum);
        let turn = if role == RaftRole::Leader { turn } else { 0 };
        let leader = metrics.current_leader.filter(|_| quorum || role == RaftRole::Leader);
        let leader = leader.and_then(|node| metrics.membership_config.get_node(&node));
        RaftStatus {
            role,
            leader: leader.map(|member| member.replica.clone()),
            term: metrics.current_term,
            turn,
            quorum,
            applied: self.applied(),
            leader_since: Instant::now(),
        }
    }

    fn role(&self, metrics: &RaftMetrics<Types>, quorum: bool) -> RaftRole {
        // A leader has read the whole log.
        if let Some(reason) = self.unreadable.borrow().clone().filter(|_| metrics.state != ServerState::Leader) {
            return RaftRole::Outside(reason);
        }
        let reason = self.outside.borrow().clone();
        // A replica removed while disconnected does not learn of the removal from its log.
        if metrics.membership_config.get_node(&self.identity.node).is_none() || (reason.is_some() && !quorum) {
            return RaftRole::Outside(reason.unwrap_or_else(|| "no longer a member of the cluster".into()));
        }
        match metrics.state {
            ServerState::Leader => RaftRole::Leader,
            ServerState::Follower => RaftRole::Follower,
            ServerState::Candidate => RaftRole::Candidate,
            ServerState::Learner => RaftRole::Learner,
            ServerState::Shutdown => RaftRole::Outside("stopped".into()),
        }
    }
}
