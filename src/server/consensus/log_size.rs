//! What the log weighs on the disk, and its bound: entries are counted, and a thousand of them may be a gigabyte. Beyond the
//! bound they are folded into a snapshot before there are so many, and few are kept.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openraft::RaftMetrics;
use redb::ReadableTable as _;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::disk::{Disk, LOG};
use super::failure::OpenError;
use super::node::Consensus;
use super::options::{KEPT_LOG_BYTES, MAX_LOG_BYTES};
use super::types::{LogId, Types};

/// The longest that a snapshot is waited for.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(30);
/// Also where nothing can be folded yet, as without a quorum.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Bytes of each entry that is on the disk.
pub(super) struct Weights {
    entries: Mutex<BTreeMap<u64, usize>>,
    all: watch::Sender<usize>,
}

impl Default for Weights {
    fn default() -> Self {
        Self { entries: Mutex::default(), all: watch::Sender::new(0) }
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", *self.all.borrow())
    }
}

impl Weights {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that is written over counts once.
    pub(super) fn add(&self, written: impl IntoIterator<Item = (u64, usize)>) {
        let mut entries = self.entries();
        for (index, bytes) in written {
            let before = entries.insert(index, bytes).unwrap_or_default();
            self.all.send_modify(|all| *all = all.saturating_sub(before).saturating_add(bytes));
        }
    }

    pub(super) fn remove(&self, range: impl RangeBounds<u64>) {
        let mut entries = self.entries();
        entries.retain(|index, _| !range.contains(index));
        self.all.send_replace(entries.values().sum());
    }

    /// The last entry that has to go so that no more than so many bytes are left behind it.
    fn last_beyond(&self, most: usize) -> Option<u64> {
        let mut left = 0_usize;
        let entries = self.entries();
        let mut newest_first = entries.iter().rev();
        let beyond = newest_first.find(|(_, bytes)| {
            left = left.saturating_add(**bytes);
            left > most
        });
        beyond.map(|(index, _)| *index)
    }

    pub(super) fn all(&self) -> watch::Receiver<usize> {
        self.all.subscribe()
    }
}

impl Disk {
    /// What each entry takes that is there at the start.
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
    /// Folds what is beyond the bound into a snapshot and lets go of it, until this replica stops.
    pub(super) async fn keep_the_log_small(self) {
        let Some(mut all) = self.disk.upgrade().map(|disk| disk.weights.all()) else { return };
        while all.wait_for(|all| *all > MAX_LOG_BYTES).await.is_ok() {
            self.shorten_the_log().await;
            // openraft lets go of it when nobody reads it any more.
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
        // One that is shut down keeps what it has.
        let _ = self.raft.trigger().purge_log(upto).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_weighed_while_they_are_there() {
        let weights = Weights::default();
        weights.add((1..=5).map(|index| (index, 10)));
        weights.add([(5, 30)]);
        assert_eq!(*weights.all().borrow(), 70);
        assert_eq!(
            [29, 30, 45, 50, 70].map(|most| weights.last_beyond(most)),
            [Some(5), Some(4), Some(3), Some(2), None]
        );
        weights.remove(..=2);
        weights.remove(5..);
        assert_eq!((*weights.all().borrow(), weights.last_beyond(0)), (20, Some(4)));
    }
}
