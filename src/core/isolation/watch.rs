//! For how long a replica has had no leader, and the documents that it has received since.

use crate::model::document::Document;
use crate::model::id::{EventId, VmName};
use crate::model::isolation::PeerAnswer;
use crate::model::time::Timestamp;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// A tick later than this was delayed: the machine was paused, and its pending results may have changed.
const PAUSED_AFTER: Duration = Duration::from_secs(2);

/// How long a replica has had no leader, and the events of its documents since then; all on the monotonic clock.
#[derive(Debug)]
pub struct IsolationWatch {
    /// Time before this does not count: the start of the watch, or the last wake-up.
    awake_since: Timestamp,
    /// The last tick; a task that is busy for long updates this field meanwhile.
    pub last_tick: Timestamp,
    /// The last time at which a reachable peer reported a leader.
    told_of_leader: Option<Timestamp>,
    seen_since: BTreeMap<EventId, Timestamp>,
}

impl IsolationWatch {
    pub const fn new(now: Timestamp) -> Self {
        Self { awake_since: now, last_tick: now, told_of_leader: None, seen_since: BTreeMap::new() }
    }

    /// An event that was missing from the documents for a while counts from its reappearance.
    pub fn tick(&mut self, now: Timestamp, document: Option<&Document>) {
        if now.since(self.last_tick) > PAUSED_AFTER {
            self.awake_since = now;
            self.seen_since.clear();
        }
        self.last_tick = now;
        self.seen_since.retain(|id, _| document.is_some_and(|document| document.get(id).is_some()));
        for event in document.iter().flat_map(|document| &document.events) {
            self.seen_since.entry(event.id.clone()).or_insert(now);
        }
    }

    /// Start of the time without a leader, as far as this replica knows: the last contact with a leader, of this
    /// replica or reported by a reachable peer.
    pub fn alone_since(&mut self, heard: Option<Timestamp>, reached: &BTreeMap<VmName, PeerAnswer>) -> Timestamp {
        if reached.values().any(|peer| peer.leader.is_some()) {
            self.told_of_leader = Some(self.last_tick);
        }
        [heard, self.told_of_leader].into_iter().flatten().fold(self.awake_since, Timestamp::max)
    }

    /// First sight of each event in cluster time; `at` converts a timestamp.
    pub fn seen_since(&self, at: impl Fn(Timestamp) -> Timestamp) -> BTreeMap<EventId, Timestamp> {
        self.seen_since.iter().map(|(id, seen)| (id.clone(), at(*seen))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::document::Status;
    use crate::model::document::tests::announced;

    fn listing(ids: &[&str]) -> Document {
        Document::new(ids.iter().map(|id| announced(id, Status::Scheduled)).collect())
    }

    #[test]
    fn what_is_seen_again_after_nothing_was_seen_counts_from_then() {
        let (mut watch, document) = (IsolationWatch::new(Timestamp(0)), listing(&["A", "B"]));
        let seen = |watch: &IsolationWatch| watch.seen_since.values().map(|at| at.0).collect::<Vec<_>>();
        watch.tick(Timestamp(1), Some(&document));
        watch.tick(Timestamp(2), Some(&document));
        assert_eq!(seen(&watch), [1, 1]);
        watch.tick(Timestamp(3), None);
        assert_eq!(seen(&watch), [0_i64; 0]);
        watch.tick(Timestamp(4), Some(&document));
        assert_eq!(seen(&watch), [4, 4]);
        watch.tick(Timestamp(5), Some(&listing(&["B", "C"])));
        assert_eq!(seen(&watch), [4, 5]);
    }

    #[test]
    fn time_slept_through_does_not_count_nor_does_what_was_seen_before() {
        let mut watch = IsolationWatch::new(Timestamp(0));
        watch.tick(Timestamp(1), Some(&listing(&["A"])));
        let woken = Timestamp(1).plus(PAUSED_AFTER + Duration::from_millis(1));
        watch.tick(woken, Some(&listing(&["A"])));
        assert_eq!(watch.alone_since(Some(Timestamp(1)), &BTreeMap::new()), woken);
        assert_eq!(watch.seen_since(|at| at)[&EventId::new("A")], woken);
    }
}
