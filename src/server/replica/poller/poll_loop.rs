//! The loop that polls the metadata service.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::cluster::ClusterHandle;
use super::super::input_source::InputSource;
use super::super::watchdog::{Loop, Watchdog};
use super::ImdsPoller;
use crate::consensus::RaftStatus;
use crate::imds::poll_schedule::PollSlot;

impl ImdsPoller {
    /// Polls at the replica's slot in the cluster's poll schedule, and when the replica becomes leader: the log's view
    /// of the cloud may be old then, and no event planned by the platform is approved before a poll.
    pub(crate) async fn poll(
        self: Arc<Self>,
        inputs: Arc<InputSource>,
        watchdog: Arc<Watchdog>,
        stop: CancellationToken,
    ) {
        let cluster = &inputs.cluster;
        let random = RandomState::new();
        let (mut raft_status, mut led_in) = (cluster.consensus.status(), 0);
        let mut turn = 0_u64;
        while !stop.is_cancelled() {
            turn += 1;
            let [jitter, ..] = random.hash_one(turn).to_le_bytes();
            let slot = slot(cluster);
            let wait = self.sight().pace.wait(slot, cluster.time.wall(), !cluster.state().open.is_empty(), jitter);
            watchdog.arm(Loop::Poll, wait);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = comes_to_lead(&mut raft_status, &mut led_in) => {}
                () = stop.cancelled() => return,
            }
            let state = cluster.state();
            tokio::select! {
                _ = self.ask(&state) => {}
                () = stop.cancelled() => return,
            }
            // The next status report may be half a second away.
            inputs.peers.record_report(&cluster.node.name, self.health(), cluster.state().operator_seq);
        }
    }
}

fn slot(cluster: &ClusterHandle) -> PollSlot {
    let members = cluster.members();
    PollSlot::new(members.iter().position(|member| *member == cluster.node.name).unwrap_or_default(), members.len())
}

/// Returns when this replica leads in another term than the last. A quorum that is lost and regained is no reason for
/// another poll.
async fn comes_to_lead(raft_status: &mut watch::Receiver<RaftStatus>, led_in: &mut u64) {
    loop {
        let term = Some(raft_status.borrow_and_update())
            .filter(|raft_status| raft_status.leads())
            .map(|raft_status| raft_status.term);
        if let Some(term) = term.filter(|term| term != led_in) {
            *led_in = term;
            return;
        }
        if raft_status.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::consensus::RaftRole;

    fn status_of(role: RaftRole, term: u64, quorum: bool) -> RaftStatus {
        RaftStatus { role, leader: None, term, turn: 1, quorum, applied: 0, leader_since: Instant::now() }
    }

    #[tokio::test]
    async fn whoever_comes_to_lead_is_told_once_in_each_term() {
        let (tell, mut raft_status) = watch::channel(status_of(RaftRole::Follower, 1, true));
        let mut led_in = 0;
        let mut comes = || comes_to_lead(&mut raft_status, &mut led_in).now_or_never().is_some();
        assert!(!comes(), "it follows");
        for (role, term, quorum, expected) in [
            (RaftRole::Leader, 2, true, true),
            (RaftRole::Leader, 2, true, false),
            (RaftRole::Leader, 2, false, false),
            (RaftRole::Leader, 2, true, false),
            (RaftRole::Follower, 3, true, false),
            (RaftRole::Leader, 4, true, true),
        ] {
            let now = status_of(role, term, quorum);
            tell.send_replace(now.clone());
            assert_eq!(comes(), expected, "{now:?}");
        }
    }
}
