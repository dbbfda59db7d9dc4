//! What a replica that hears no leader knows beside what it has applied.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::apply::apply;
use super::command::Entry;
use super::document::{Announcement, Document};
use super::id::{EventId, VmName, WorkloadName};
use super::situation::Channel;
use super::state::State;
use super::takeover::Journaled;
use super::time::Timestamp;
use super::workload::Readiness;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Alone {
    /// Since when it hears no leader, and nobody it reaches tells of one.
    pub since: Timestamp,
    /// In the order of the configuration, this replica among them. Empty when it was removed.
    pub voters: Vec<VmName>,
    /// The voters that answer it.
    pub reached: BTreeMap<VmName, Peer>,
    /// What its endpoint says, as far as it is believed; `None` while its channel does not work.
    pub document: Option<Document>,
    /// Since when its documents have listed an event without a break.
    pub seen_since: BTreeMap<EventId, Timestamp>,
    /// The log's time carried on by a steady clock, never ahead of the cluster's: what the log dates is over by it.
    pub log_time: Timestamp,
    /// The entries of its log that it has not applied: the others may know that they are committed.
    pub tail: Vec<Entry>,
    /// What its own workloads answered last when they were asked whether they are ready.
    pub readiness: BTreeMap<WorkloadName, Readiness>,
    /// What it did alone and the log may not know.
    pub journal: Vec<Journaled>,
}

/// What a replica answered to one which hears no leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Whom it hears, perhaps itself; not the replica that asked, which has no quorum then.
    pub leader: Option<String>,
    /// Whether its metadata endpoint answers, for the status of this replica.
    pub channel: Channel,
}

impl Alone {
    pub fn listed(&self, id: &EventId) -> Option<&Announcement> {
        self.document.as_ref()?.get(id)
    }

    /// The state if everything in its log were committed.
    pub fn furthest(&self, state: &State) -> State {
        let mut furthest = state.clone();
        for entry in &self.tail {
            apply(&mut furthest, entry);
        }
        furthest
    }

    /// Without this replica the other voter of a pair has no quorum either. The others of three or more may have one,
    /// and an isolated replica cannot know what they decide.
    pub fn is_one_of_a_pair(&self) -> bool {
        self.voters.len() == 2
    }

    /// The voters that do not answer `me`.
    pub fn out_of_reach(&self, me: &VmName) -> Vec<VmName> {
        self.voters.iter().filter(|name| *name != me && !self.reached.contains_key(*name)).cloned().collect()
    }
}

/// A tick that comes later than this was held up: the machine was paused, and what it waited for may have changed.
const PAUSED_AFTER: Duration = Duration::from_secs(2);

/// How long a replica has heard no leader, and what it has seen meanwhile; all on its steady clock.
#[derive(Debug)]
pub struct Watch {
    /// Time before this does not count: it began, or woke, at this moment.
    awake_since: Timestamp,
    /// When it was looked at last; whoever is busy for long meanwhile says so.
    pub last_tick: Timestamp,
    /// When somebody whom it reaches last told of a leader.
    told_of_leader: Option<Timestamp>,
    seen_since: BTreeMap<EventId, Timestamp>,
}

impl Watch {
    pub const fn new(now: Timestamp) -> Self {
        Self { awake_since: now, last_tick: now, told_of_leader: None, seen_since: BTreeMap::new() }
    }

    /// An event that no document showed for a while counts from when it is seen again.
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

    /// Since when nobody leads, as far as this replica knows: it heard a leader then, or whoever it reaches told of one.
    pub fn alone_since(&mut self, heard: Option<Timestamp>, reached: &BTreeMap<VmName, Peer>) -> Timestamp {
        if reached.values().any(|peer| peer.leader.is_some()) {
            self.told_of_leader = Some(self.last_tick);
        }
        [heard, self.told_of_leader].into_iter().flatten().fold(self.awake_since, Timestamp::max)
    }

    /// In the cluster's time, which `at` tells of a moment.
    pub fn seen_since(&self, at: impl Fn(Timestamp) -> Timestamp) -> BTreeMap<EventId, Timestamp> {
        self.seen_since.iter().map(|(id, seen)| (id.clone(), at(*seen))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::Status;
    use super::super::document::tests::announced;
    use super::*;

    fn listing(ids: &[&str]) -> Document {
        Document::new(ids.iter().map(|id| announced(id, Status::Scheduled)).collect())
    }

    #[test]
    fn what_is_seen_again_after_nothing_was_seen_counts_from_then() {
        let (mut watch, document) = (Watch::new(Timestamp(0)), listing(&["A", "B"]));
        let seen = |watch: &Watch| watch.seen_since.values().map(|at| at.0).collect::<Vec<_>>();
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
        let mut watch = Watch::new(Timestamp(0));
        watch.tick(Timestamp(1), Some(&listing(&["A"])));
        let woken = Timestamp(1).plus(PAUSED_AFTER + Duration::from_millis(1));
        watch.tick(woken, Some(&listing(&["A"])));
        assert_eq!(watch.alone_since(Some(Timestamp(1)), &BTreeMap::new()), woken);
        assert_eq!(watch.seen_since(|at| at)[&EventId::new("A")], woken);
    }
}
