//! What all replicas agree on: the fold of the log.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::document::{Document, Status};
use super::event::Event;
use super::id::{AttemptId, EventId, VmName};
use super::operator::Wish;
use super::suspicion::{Leadership, Suspicion};
use super::time::Timestamp;
use super::workload::{Group, Hook, HookId, Member, Workload};

/// Closed events that are kept.
pub const HISTORY_LIMIT: usize = 1_000;
/// Open events; an announcement beyond is not taken up until one closes.
pub const OPEN_LIMIT: usize = 1_000;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// The time of the last entry.
    pub now: Timestamp,
    pub replicas: BTreeMap<VmName, Replica>,
    pub open: BTreeMap<EventId, Event>,
    /// Oldest first.
    pub history: VecDeque<Event>,
    /// How many attempts were ever made.
    pub attempts: u64,
    /// The latest; `None` before the first.
    pub leadership: Option<Leadership>,
    /// One for every replica that ever was a voter under a leader, or fell silent.
    pub suspicions: BTreeMap<VmName, Suspicion>,
    /// How many wishes of operators were ever taken over.
    pub wished: u64,
    /// Those about no single event, oldest first.
    pub wishes: Vec<Wish>,
}

/// One replica as far as the log knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replica {
    pub workloads: Vec<Workload>,
    /// The groups of its configuration.
    pub groups: Vec<Group>,
    /// How many of its documents were taken over.
    pub reports: u64,
    /// The latest; `None` before the first.
    pub document: Option<Document>,
    /// Since when the document is too old to count; `None` while it counts.
    pub discounted: Option<Timestamp>,
}

impl Replica {
    /// The status its current document gives an event; `None` when it does not list it or no longer counts.
    pub fn lists(&self, event: &EventId) -> Option<&Status> {
        if self.discounted.is_some() {
            return None;
        }
        self.document.as_ref()?.get(event).map(|announcement| &announcement.status)
    }

    /// It listed the event and its current document no longer does.
    fn cleared(&self, event: &EventId) -> bool {
        self.discounted.is_none() && self.document.as_ref().is_some_and(|document| document.get(event).is_none())
    }
}

impl State {
    pub fn event(&self, id: &EventId) -> Option<&Event> {
        self.open.get(id).or_else(|| self.history.iter().rev().find(|event| event.announcement.id == *id))
    }

    pub fn workload(&self, member: &Member) -> Option<&Workload> {
        self.replicas.get(&member.vm)?.workloads.iter().find(|workload| workload.name == member.workload)
    }

    pub fn hook(&self, member: &Member, hook: HookId) -> Option<&Hook> {
        self.workload(member)?.hook(hook)
    }

    /// The furthest status that any current document shows.
    pub fn observed_status(&self, event: &EventId) -> Option<&Status> {
        self.replicas.values().filter_map(|replica| replica.lists(event)).max()
    }

    /// Some current document lists the event.
    pub fn is_listed(&self, event: &EventId) -> bool {
        self.observed_status(event).is_some()
    }

    /// Every replica that listed the event says that it is gone, or no longer counts beside one that says so.
    pub fn is_gone(&self, event: &EventId, seen_by: &BTreeSet<VmName>) -> bool {
        let mut seers = seen_by
            .iter()
            .filter_map(|name| self.replicas.get(name))
            .filter(|replica| replica.discounted.is_none())
            .peekable();
        seers.peek().is_some() && seers.all(|replica| replica.cleared(event))
    }

    pub(super) fn next_attempt(&mut self) -> AttemptId {
        self.attempts += 1;
        AttemptId(self.attempts)
    }
}
