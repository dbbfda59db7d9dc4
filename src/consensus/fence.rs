//! Fencing off: before a replica acts without a leader it makes sure that no leader of before can count on it.

use std::time::Duration;

use tokio::time::Instant;

use super::failure::Fatal;
use super::node::Node;

/// One synced write of the vote.
const WITHIN: Duration = Duration::from_secs(2);

impl Node {
    /// Stands for election in a new term, which is on disk before this returns true. A leader of an earlier term gets
    /// nothing acknowledged here from then on: it has to be elected anew, and begins anew. A leader needs no fence, a
    /// new turn begins with its quorum.
    pub(crate) async fn fence(&self) -> Result<bool, Fatal> {
        let stopped = || Fatal(self.stopped().unwrap_or_else(|| "consensus has stopped".into()));
        if self.raft.is_leader() {
            return Ok(true);
        }
        let before = self.with_metrics(|metrics| metrics.current_term);
        self.raft.trigger().elect(false).await.map_err(|why| Fatal(why.to_string()))?;
        let risen = self.metrics_show(Instant::now() + WITHIN, |metrics| metrics.current_term > before);
        risen.await.map_err(|_| stopped())
    }
}
