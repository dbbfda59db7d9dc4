//! The committed log: one chain of entries for all replicas, with the state after each entry. Every link is judged at
//! its commit.

use std::rc::Rc;

use super::LogSlot;
use crate::world::World;
use allclear_core::model::command::{ApplyResult, Entry};
use allclear_core::model::state::State;

#[derive(Default)]
pub(crate) struct Chain {
    links: Vec<ChainLink>,
}

struct ChainLink {
    slot: LogSlot,
    verdict: Option<ApplyResult>,
    after: Rc<State>,
}

impl Chain {
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// The state after `position` entries.
    pub(crate) fn state(&self, position: usize) -> Rc<State> {
        let link = position.checked_sub(1).and_then(|place| self.links.get(place));
        link.map(|link| link.after.clone()).unwrap_or_default()
    }

    pub(crate) fn latest(&self) -> Rc<State> {
        self.state(self.links.len())
    }

    pub(super) fn is(&self, position: usize, slot: &LogSlot) -> bool {
        self.links[position - 1].slot == *slot
    }

    pub(super) fn is_news(&self, from: usize, to: usize) -> bool {
        self.links[from..to].iter().any(|link| link.verdict == Some(ApplyResult::Applied))
    }

    pub(super) fn verdict(&self, position: usize, term: u64) -> Option<ApplyResult> {
        self.links.get(position - 1).filter(|link| link.slot.term == term).and_then(|link| link.verdict.clone())
    }

    /// The entries of a log slice after the applied position.
    pub(crate) fn tail(log: &[LogSlot]) -> Vec<Entry> {
        log.iter().filter_map(LogSlot::entry).map(|entry| entry.as_ref().clone()).collect()
    }

    /// The entries in their order, to fold the log once more.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Rc<Entry>> {
        self.links.iter().filter_map(|link| link.slot.entry())
    }
}

impl World {
    /// Appends the next link.
    pub(super) fn commit(self: &Rc<Self>, vm: usize, slot: &LogSlot) {
        let before = self.chain.borrow().latest();
        let mut after = before.clone();
        let mut verdict = None;
        if let Some(entry) = slot.entry() {
            let told = verdict.insert(self.mutation.apply(Rc::make_mut(&mut after), entry));
            self.tell(|| format!("  log: {:?} by {}: {told:?}", entry.command, entry.by));
        }
        let link = ChainLink { slot: slot.clone(), verdict: verdict.clone(), after: after.clone() };
        self.chain.borrow_mut().links.push(link);
        if let Some(entry) = slot.entry().filter(|_| verdict == Some(ApplyResult::Applied)) {
            self.judge_entry(vm, &before, &after, entry);
        } else if let Some(entry) = slot.entry() {
            self.judge_time(vm, entry);
        }
    }
}
