//! What is committed: one chain of entries for all replicas, with the state after each. Every link is judged when it is
//! made.

use std::collections::VecDeque;
use std::rc::Rc;

use super::{Payload, Slot};
use crate::machine::command::{Entry, Verdict};
use crate::machine::state::State;
use crate::simulator::world::World;

pub(in crate::simulator) struct Chain {
    /// Of these the state is still known to some replica.
    states: VecDeque<Rc<State>>,
    /// The position of the first of them.
    first: usize,
    links: Vec<Link>,
}

struct Link {
    slot: Slot,
    verdict: Option<Verdict>,
}

impl Chain {
    pub(in crate::simulator) fn new() -> Self {
        Self { states: VecDeque::from([Rc::default()]), first: 0, links: Vec::new() }
    }

    pub(in crate::simulator) fn len(&self) -> usize {
        self.links.len()
    }

    /// After so many entries; the oldest that is still known where that is not any more.
    pub(in crate::simulator) fn state(&self, position: usize) -> Rc<State> {
        if position == 0 {
            return Rc::default();
        }
        let place = position.saturating_sub(self.first).min(self.states.len() - 1);
        self.states[place].clone()
    }

    /// Whoever has applied so many entries can apply the next one.
    pub(super) fn knows(&self, position: usize) -> bool {
        self.first <= position
    }

    pub(in crate::simulator) fn latest(&self) -> Rc<State> {
        self.state(self.links.len())
    }

    pub(super) fn is(&self, position: usize, slot: &Slot) -> bool {
        let known = &self.links[position - 1].slot;
        let is_same = match (&known.what, &slot.what) {
            (Payload::Entry(one), Payload::Entry(other)) => Rc::ptr_eq(one, other),
            (Payload::Blank, Payload::Blank) => true,
            (Payload::Members(one), Payload::Members(other)) => one == other,
            _ => false,
        };
        known.term == slot.term && is_same
    }

    pub(super) fn is_news(&self, from: usize, to: usize) -> bool {
        self.links[from..to].iter().any(|link| link.verdict == Some(Verdict::Applied))
    }

    pub(super) fn verdict(&self, position: usize, term: u64) -> Option<Verdict> {
        self.links.get(position - 1).filter(|link| link.slot.term == term).and_then(|link| link.verdict.clone())
    }

    /// What stands in a log behind what is applied.
    pub(in crate::simulator) fn tail(log: &[Slot]) -> Vec<Entry> {
        let entries = log.iter().filter_map(|slot| match &slot.what {
            Payload::Entry(entry) => Some(entry.as_ref().clone()),
            Payload::Blank | Payload::Members(_) => None,
        });
        entries.collect()
    }

    /// Nobody needs the states before this one any more.
    fn forget_before(&mut self, position: usize) {
        while self.first < position && self.states.len() > 1 {
            self.states.pop_front();
            self.first += 1;
        }
    }

    /// The entries in their order, to fold them once more.
    pub(in crate::simulator) fn entries(&self) -> impl Iterator<Item = &Rc<Entry>> {
        self.links.iter().filter_map(|link| match &link.slot.what {
            Payload::Entry(entry) => Some(entry),
            Payload::Blank | Payload::Members(_) => None,
        })
    }
}

impl World {
    /// The next link.
    pub(super) fn commit(self: &Rc<Self>, vm: usize, slot: &Slot) {
        let before = self.chain.borrow().latest();
        let (after, verdict) = match &slot.what {
            Payload::Blank | Payload::Members(_) => (before.clone(), None),
            Payload::Entry(entry) => {
                let mut state = before.as_ref().clone();
                let verdict = self.mistake.apply(&mut state, entry);
                (Rc::new(state), Some(verdict))
            }
        };
        if let (Payload::Entry(entry), Some(verdict)) = (&slot.what, &verdict) {
            self.tell(|| {
                let told = match verdict {
                    Verdict::Applied => String::new(),
                    Verdict::Ignored(why) => format!("  ignored: {why}"),
                };
                format!("  log: {} by {}{told}", super::super::trace::shown(&entry.command), entry.by)
            });
        }
        {
            let mut chain = self.chain.borrow_mut();
            chain.states.push_back(after.clone());
            chain.links.push(Link { slot: slot.clone(), verdict: verdict.clone() });
            let needed = self.nodes.iter().filter(|node| !node.body.borrow().is_deleted);
            let oldest = needed.map(|node| node.kept.borrow().applied).min().unwrap_or(0);
            chain.forget_before(oldest);
        }
        if let (Payload::Entry(entry), Some(verdict)) = (&slot.what, verdict) {
            self.judge_entry(vm, &before, &after, entry, &verdict);
        }
    }
}
