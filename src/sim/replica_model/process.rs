//! The state of one run of a replica.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::poller::ModelPollState;
use crate::program::Key;
use crate::tasks::Signal;
use crate::world::World;
use allclear_core::cluster_time::{ClockReading, ClusterTime, Trust};
use allclear_core::model::isolation::IsolatedView;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::peer_table::PeerTable;

/// The signals that wake the tasks.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) changed: Signal,
    /// An entry was applied, with or without a change.
    pub(crate) reached: Signal,
    pub(crate) status: Signal,
    pub(crate) polled: Signal,
    pub(crate) contact: Signal,
    pub(crate) journaled: Signal,
    pub(crate) programs: Signal,
    pub(crate) presence: Signal,
}

pub(crate) struct ProcessState {
    me: usize,
    pub(super) time: RefCell<ClusterTime>,
    /// As the leader: the clock readings of other replicas.
    pub(super) readings: RefCell<BTreeMap<usize, ClockReading>>,
    /// The base of the last time from a leader, if this replica follows this time.
    pub(super) base: Cell<Option<i64>>,
    pub(super) contacts: RefCell<PeerTable>,
    pub(super) sight: RefCell<ModelPollState>,
    /// `None` while the replica has a leader.
    pub(super) alone: RefCell<Option<IsolatedView>>,
    /// Whether the log had a record of a previous run when this run had caught up.
    pub(super) is_known: Cell<Option<bool>>,
    /// Attempts in the process of being started or recorded.
    pub(super) busy: RefCell<BTreeSet<Key>>,
    /// The state after the last applied entry.
    state: RefCell<Rc<State>>,
    pub(crate) signals: Signals,
    /// True while an entry is written to the journal and while a reconciliation is built.
    pub(super) has_turn: Cell<bool>,
}

impl ProcessState {
    pub(crate) fn new(world: &World, me: usize) -> Self {
        let node = &world.nodes[me];
        let applied = node.kept.borrow().applied;
        let state = world.chain.borrow().state(applied);
        let clocks = node.clocks(world.now());
        let mut time = ClusterTime::default();
        if applied > 0 {
            time.applied(clocks, state.now, !state.open.is_empty());
        }
        Self {
            me,
            time: RefCell::new(time),
            readings: RefCell::default(),
            base: Cell::default(),
            contacts: RefCell::new(PeerTable::new(node.name.clone())),
            sight: RefCell::new(ModelPollState::new(clocks.steady)),
            alone: RefCell::default(),
            is_known: Cell::default(),
            busy: RefCell::default(),
            state: RefCell::new(state),
            signals: Signals::default(),
            has_turn: Cell::new(false),
        }
    }

    pub(crate) fn state(&self) -> Rc<State> {
        self.state.borrow().clone()
    }

    /// More of the log is applied. An entry without a change does not signal `changed`.
    pub(crate) fn applied(&self, world: &World, is_news: bool) {
        let node = &world.nodes[self.me];
        let state = world.chain.borrow().state(node.agreement.borrow().applied);
        let clocks = node.clocks(world.now());
        self.time.borrow_mut().applied(clocks, state.now, !state.open.is_empty());
        if is_news {
            self.state.replace(state);
            self.signals.changed.tell(&world.tasks);
        }
        self.signals.reached.tell(&world.tasks);
    }

    /// Only the leader stamps, and only if the cluster's time is known.
    pub(crate) fn stamp(&self, world: &World) -> Option<Timestamp> {
        let clocks = world.nodes[self.me].clocks(world.now());
        let mut time = self.time.borrow_mut();
        time.lead();
        (time.trust() != Trust::Unknown).then(|| time.now(clocks))
    }
}
