//! What one life of a replica knows, and the calls that it waits for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::clock::{Clocks, ClusterTime};
use super::contacts::Contacts;
use super::observer::Sight;
use crate::machine::alone::Alone;
use crate::machine::command::Verdict;
use crate::machine::id::AttemptId;
use crate::machine::state::State;
use crate::machine::time::Timestamp;
use crate::simulator::program::Key;
use crate::simulator::tasks::{Answer, Signal};
use crate::simulator::world::World;

type Proposal = Answer<Option<Result<Verdict, ()>>>;
type Reading = Answer<Option<usize>>;

pub(in crate::simulator) struct Process {
    me: usize,
    pub(super) time: RefCell<ClusterTime>,
    pub(super) contacts: RefCell<Contacts>,
    pub(super) sight: RefCell<Sight>,
    /// `None` while a leader is heard.
    pub(super) alone: RefCell<Option<Alone>>,
    /// The last attempt that was decided before this life began, once it is known.
    pub(super) inherited: Cell<Option<AttemptId>>,
    /// Attempts that are being started or recorded.
    pub(super) busy: RefCell<BTreeSet<Key>>,
    /// The state as it was applied last.
    state: RefCell<Rc<State>>,
    pub(super) changed: Signal,
    /// Something was applied, whether it changed anything or not.
    pub(in crate::simulator) reached: Signal,
    pub(in crate::simulator) standing: Signal,
    pub(super) polled: Signal,
    pub(super) caught_up: Signal,
    pub(super) contact: Signal,
    pub(super) journaled: Signal,
    pub(in crate::simulator) programs: Signal,
    pub(in crate::simulator) presence: Signal,
    /// Held while an entry is written to the journal and while an account of it is built.
    pub(super) has_turn: Cell<bool>,
    calls: Cell<u64>,
    proposals: RefCell<BTreeMap<u64, (usize, Proposal)>>,
    readings: RefCell<BTreeMap<u64, (usize, Reading)>>,
}

impl Process {
    pub(in crate::simulator) fn new(world: &World, me: usize) -> Self {
        let node = &world.nodes[me];
        let applied = node.kept.borrow().applied;
        let state = world.chain.borrow().state(applied);
        let steady = node.steady(world.now());
        let clocks = Clocks { steady, wall: node.wall(world.now()) };
        let mut time = ClusterTime::default();
        if applied > 0 {
            time.applied(clocks, state.now, !state.open.is_empty());
        }
        Self {
            me,
            time: RefCell::new(time),
            contacts: RefCell::default(),
            sight: RefCell::new(Sight::new(steady)),
            alone: RefCell::default(),
            inherited: Cell::default(),
            busy: RefCell::default(),
            state: RefCell::new(state),
            changed: Signal::default(),
            reached: Signal::default(),
            standing: Signal::default(),
            polled: Signal::default(),
            caught_up: Signal::default(),
            contact: Signal::default(),
            journaled: Signal::default(),
            programs: Signal::default(),
            presence: Signal::default(),
            has_turn: Cell::new(false),
            calls: Cell::new(u64::from(node.life()) << 32),
            proposals: RefCell::default(),
            readings: RefCell::default(),
        }
    }

    pub(super) fn state(&self) -> Rc<State> {
        self.state.borrow().clone()
    }

    /// More of the log is applied. What changed nothing wakes nobody.
    pub(in crate::simulator) fn applied(&self, world: &World, is_news: bool) {
        let node = &world.nodes[self.me];
        let state = world.chain.borrow().state(node.agreement.borrow().applied);
        let clocks = Clocks { steady: node.steady(world.now()), wall: node.wall(world.now()) };
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
        let clocks = Clocks { steady: node.steady(world.now()), wall: node.wall(world.now()) };
        let mut time = self.time.borrow_mut();
        time.lead();
        time.now(clocks)
    }

    pub(in crate::simulator) fn call_proposal(&self, to: usize) -> (u64, Proposal) {
        let (call, answer) = (self.calls.get(), Answer::new());
        self.calls.set(call + 1);
        self.proposals.borrow_mut().insert(call, (to, answer.clone()));
        (call, answer)
    }

    pub(in crate::simulator) fn call_read(&self, to: usize) -> (u64, Reading) {
        let (call, answer) = (self.calls.get(), Answer::new());
        self.calls.set(call + 1);
        self.readings.borrow_mut().insert(call, (to, answer.clone()));
        (call, answer)
    }

    pub(in crate::simulator) fn hang_up(&self, call: u64) {
        self.proposals.borrow_mut().remove(&call);
        self.readings.borrow_mut().remove(&call);
    }

    pub(in crate::simulator) fn proposed(&self, world: &World, call: u64, answer: Option<Result<Verdict, ()>>) {
        if let Some((_, waiting)) = self.proposals.borrow_mut().remove(&call) {
            waiting.give(&world.tasks, answer);
        }
    }

    pub(in crate::simulator) fn confirmed(&self, world: &World, call: u64, index: Option<usize>) {
        if let Some((_, waiting)) = self.readings.borrow_mut().remove(&call) {
            waiting.give(&world.tasks, index);
        }
    }

    /// Another one leads: what was asked of somebody else may have been taken or not.
    pub(in crate::simulator) fn leader_changed(&self, world: &World, leader: Option<usize>) {
        let Some(leader) = leader else { return };
        let stranded = |(to, _): &(usize, Proposal)| *to != leader;
        let mut proposals = self.proposals.borrow_mut();
        let calls: Vec<u64> = proposals.iter().filter(|(_, it)| stranded(it)).map(|(call, _)| *call).collect();
        for call in calls {
            if let Some((_, waiting)) = proposals.remove(&call) {
                waiting.give(&world.tasks, Some(Err(())));
            }
        }
    }
}
