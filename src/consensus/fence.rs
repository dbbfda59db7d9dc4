//! Fencing off: before a replica acts without a leader it makes sure that no leader of before can count on it.

use std::time::Duration;

use tokio::time::Instant;

use super::failure::AskError;
use super::node::Consensus;

/// One synced write of the vote.
const WITHIN: Duration = Duration::from_secs(2);

impl Consensus {
    /// Before this replica acts without a leader: a leader of before cannot count on it any more once this returned
    /// true. Stands for election in a new term, which is on disk before this returns true. A leader of an earlier term gets
    /// nothing acknowledged here from then on: it has to be elected anew, and begins anew. A leader needs no fence, a
    /// new turn begins with its quorum.
    pub async fn fence(&self) -> Result<bool, AskError> {
        if self.raft.is_leader() {
            return Ok(true);
        }
        let before = self.with_metrics(|metrics| metrics.current_term);
        self.raft.trigger().elect(false).await.map_err(AskError::stopped)?;
        self.metrics_show(Instant::now() + WITHIN, |metrics| metrics.current_term > before).await
    }
}
