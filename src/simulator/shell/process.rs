//! What one life of a replica knows.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use super::clock::ClusterTime;
use super::contacts::Contacts;
use super::observer::Sight;
use crate::machine::alone::Alone;
use crate::machine::state::State;
use crate::machine::time::Timestamp;
use crate::simulator::program::Key;
use crate::simulator::tasks::Signal;
use crate::simulator::world::World;

#[derive(Default)]
pub(in crate::simulator) struct Process {
    me: usize,
    pub(super) time: RefCell<ClusterTime>,
    pub(super) contacts: RefCell<Contacts>,
    pub(super) sight: RefCell<Sight>,
    /// `None` while a leader is heard.
    pub(super) alone: RefCell<Option<Alone>>,
    /// Attempts that are being started or recorded.
    pub(super) busy: RefCell<BTreeSet<Key>>,
    /// The state as it was applied last.
    state: RefCell<Rc<State>>,
    pub(super) changed: Signal,
    /// Something was applied, whether it changed anything or not.
    pub(in crate::simulator) reached: Signal,
    pub(in crate::simulator) standing: Signal,
    pub(super) polled: Signal,
    pub(super) contact: Signal,
    pub(super) journaled: Signal,
    pub(in crate::simulator) programs: Signal,
    pub(in crate::simulator) presence: Signal,
    /// Held while an entry is written to the journal and while an account of it is built.
    pub(super) has_turn: Cell<bool>,
}

impl Process {
    pub(in crate::simulator) fn new(world: &World, me: usize) -> Self {
        let node = &world.nodes[me];
        let applied = node.kept.borrow().applied;
        let state = world.chain.borrow().state(applied);
        let clocks = node.clocks(world.now());
        let mut time = ClusterTime::default();
        if applied > 0 {
            time.applied(clocks, state.now, !state.open.is_empty());
        }
        let (time, sight) = (RefCell::new(time), RefCell::new(Sight::new(clocks.steady)));
        Self { me, time, sight, state: RefCell::new(state), ..Self::default() }
    }

    pub(in crate::simulator) fn state(&self) -> Rc<State> {
        self.state.borrow().clone()
    }

    /// More of the log is applied. What changed nothing wakes nobody.
    pub(in crate::simulator) fn applied(&self, world: &World, is_news: bool) {
        let node = &world.nodes[self.me];
        let state = world.chain.borrow().state(node.agreement.borrow().applied);
        let clocks = node.clocks(world.now());
        self.time.borrow_mut().applied(clocks, state.now, !state.open.is_empty());
        if is_news {
            self.state.replace(state);
            self.changed.tell(&world.tasks);
        }
        self.reached.tell(&world.tasks);
    }

    /// Only the leader stamps.
    pub(in crate::simulator) fn stamp(&self, world: &World, vm: usize) -> Timestamp {
        let node = &world.nodes[vm];
        let clocks = node.clocks(world.now());
        let mut time = self.time.borrow_mut();
        time.lead();
        time.now(clocks)
    }
}
