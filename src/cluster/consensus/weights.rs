//! The size of each entry on the disk.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

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

    /// Adds written entries; an overwritten entry counts once.
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

    /// The last entry to purge so that at most `most` bytes are left behind this entry.
    pub(super) fn last_beyond(&self, most: usize) -> Option<u64> {
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
