//! The last contact with other replicas: a leader's with each voter, and every replica's with its leader. All
//! timestamps are of the monotonic clock.

use std::collections::BTreeMap;
use std::time::Instant;

use openraft::rt::WatchReceiver as _;
use openraft::{RaftMetrics, ServerState};

use super::node::Consensus;
use super::types::Types;

impl Consensus {
    /// On the leader: the send time of the last message acknowledged by each other voter, by name. The voter heard this
    /// leader then or later, never earlier. Voters without an acknowledgement in this term are left out. On other
    /// replicas: empty.
    ///
    /// openraft stamps an append at its creation, before sending, and there is a single append under way to each voter
    /// beside the heartbeat, so that the acknowledged append is the stamped append.
    pub fn acknowledged(&self) -> BTreeMap<String, Instant> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let Some(heartbeat) = metrics.heartbeat.as_ref().filter(|_| metrics.state == ServerState::Leader) else {
            return BTreeMap::new();
        };
        let voters = metrics.membership_config.voter_ids().filter(|voter| *voter != self.identity.node);
        let acknowledged = voters.filter_map(|voter| {
            let sent = (*heartbeat.get(&voter)?)?.into_inner();
            Some((metrics.membership_config.get_node(&voter)?.replica.clone(), self.start.of(sent)))
        });
        acknowledged.collect()
    }

    /// When a leader was last heard here; on the leader, the send time of the last message acknowledged by a quorum,
    /// which is now for the only voter. A former leader keeps its last value. `None` before the first.
    pub fn last_contact(&self) -> Option<Instant> {
        let as_leader = self.with_metrics(|metrics| {
            (metrics.state == ServerState::Leader).then(|| self.quorum_acknowledged(metrics)).flatten()
        });
        let led_before = self.turns().acknowledged();
        (*self.heard.borrow()).max(as_leader).max(led_before)
    }

    /// The send time of the last message acknowledged by a quorum. The only voter needs no other replica.
    pub(super) fn quorum_acknowledged(&self, metrics: &RaftMetrics<Types>) -> Option<Instant> {
        if metrics.membership_config.voter_ids().count() == 1 {
            return Some(Instant::now());
        }
        metrics.last_quorum_acked.map(|acked| self.start.of(acked.into_inner()))
    }
}
