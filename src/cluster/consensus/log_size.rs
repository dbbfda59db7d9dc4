//! The size of the log on the disk, and its bound: 1,000 entries may be a gigabyte. Beyond the bound a snapshot
//! replaces the entries earlier, and fewer are kept.
use std::time::Duration;

use openraft::RaftMetrics;
use redb::ReadableTable as _;
use tokio::time::{Instant, timeout};

use super::disk::Disk;
use super::failure::OpenError;
use super::node::Consensus;
use super::options::{KEPT_LOG_BYTES, MAX_LOG_BYTES};
use super::tables::LOG;
use super::types::{LogId, Types};

/// The longest wait for a snapshot.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(30);
/// The pause between attempts, also while no snapshot is possible yet, as without a quorum.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Disk {
    /// Records the size of each entry in the log at the start.
    pub(super) fn weigh(&self) -> Result<(), OpenError> {
        self.read(|transaction| {
            for pair in transaction.open_table(LOG)?.iter()? {
                let (index, sealed) = pair?;
                self.weights.add([(index.value(), sealed.value().len())]);
            }
            Ok(())
        })
    }
}

fn folded(metrics: &RaftMetrics<Types>) -> u64 {
    metrics.snapshot.as_ref().map_or(0, LogId::index)
}

impl Consensus {
    /// Replaces the log beyond the bound with a snapshot and purges these entries, until this replica stops.
    pub(super) async fn keep_the_log_small(self) {
        let Some(mut all) = self.disk.upgrade().map(|disk| disk.weights.all()) else { return };
        while all.wait_for(|all| *all > MAX_LOG_BYTES).await.is_ok() {
            self.shorten_the_log().await;
            // openraft purges an entry once no reader needs the entry.
            let _ = timeout(AGAIN_AFTER, all.wait_for(|all| *all <= MAX_LOG_BYTES)).await;
        }
    }

    async fn shorten_the_log(&self) {
        let Some(upto) = self.disk.upgrade().and_then(|disk| disk.weights.last_beyond(KEPT_LOG_BYTES)) else { return };
        let applied = self.with_metrics(|metrics| metrics.last_applied.as_ref().map_or(0, LogId::index));
        let upto = upto.min(applied);
        if self.with_metrics(folded) < upto {
            if self.raft.trigger().snapshot().await.is_err() {
                return;
            }
            let within = Instant::now() + SNAPSHOT_WITHIN;
            if !matches!(self.metrics_show(within, |metrics| folded(metrics) >= upto).await, Ok(Some(_))) {
                return;
            }
        }
        tracing::debug!(upto, "log over its limit: entries in the snapshot purged");
        // A Raft instance after shutdown keeps its log.
        let _ = self.raft.trigger().purge_log(upto).await;
    }
}
