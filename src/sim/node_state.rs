//! One VM with its replica: whether it runs, its clocks, and what is on its disk.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::event_queue::QueuedEvent;
use super::program::{Key, Program};
use super::raft_model::{Agreement, ModelDisk, ModelMembers};
use super::replica_model::ProcessState;
use allclear_core::cluster_time::Clocks;
use allclear_core::model::id::{GroupName, VmName};
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Role, Workload};

pub(super) struct Node {
    pub(super) name: VmName,
    pub(super) body: RefCell<NodeState>,
    /// On its disk.
    pub(super) kept: RefCell<ModelDisk>,
    pub(super) journal: RefCell<Vec<JournalEntry>>,
    /// There is none on the disk yet.
    pub(super) has_new_journal: Cell<bool>,
    /// The disk is new: what is not known of programs may have been begun before it.
    pub(super) is_new: Cell<bool>,
    /// Outlive the process, not the machine.
    pub(super) programs: RefCell<BTreeMap<Key, Program>>,
    /// Of this life.
    pub(super) agreement: RefCell<Agreement>,
    pub(super) process: RefCell<Option<Rc<ProcessState>>>,
    /// Those of its configuration.
    pub(super) workloads: RefCell<Vec<Workload>>,
    /// The configured workload's, as it is.
    pub(super) role: Cell<Role>,
    /// What dialled in, and whether it is there.
    pub(super) guest: RefCell<Option<SessionWorkload>>,
}

pub(super) struct SessionWorkload {
    pub(super) workload: Workload,
    pub(super) is_here: bool,
    pub(super) says_farewell: bool,
}

#[derive(Default)]
pub(super) struct NodeState {
    pub(super) is_up: bool,
    pub(super) is_deleted: bool,
    /// Counts processes, and machines that were started.
    pub(super) life: u32,
    pub(super) boot: u32,
    /// Counts pauses and crashes, so that only the last one's end counts.
    pub(super) downs: u32,
    pub(super) pause: Option<Pause>,
    /// What came while it was paused.
    pub(super) held: Vec<QueuedEvent>,
    /// How long the steady clock has stood still, in milliseconds.
    pub(super) stood: i64,
    /// Of the wall clock, in milliseconds.
    pub(super) ahead: i64,
    /// When it began or was woken after a stop that its steady clock has seen; on that clock.
    pub(super) awake_since: Timestamp,
    /// The disk fails at the next write: with what is written, or without.
    pub(super) fails: Option<bool>,
    /// The process is to die as soon as what it does now is done.
    pub(super) is_doomed: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Pause {
    pub(super) since: Timestamp,
    pub(super) stops_clock: bool,
    /// What is sent to it later than this is lost.
    pub(super) holds: Duration,
}

impl Node {
    pub(super) fn new(name: VmName, ahead: i64, members: Rc<ModelMembers>, workloads: Vec<Workload>) -> Self {
        Self {
            name,
            body: RefCell::new(NodeState { ahead, ..NodeState::default() }),
            kept: RefCell::new(ModelDisk::new(members)),
            journal: RefCell::default(),
            has_new_journal: Cell::new(true),
            is_new: Cell::new(true),
            programs: RefCell::default(),
            agreement: RefCell::default(),
            process: RefCell::default(),
            workloads: RefCell::new(workloads),
            role: Cell::new(Role::Unknown),
            guest: RefCell::default(),
        }
    }

    /// Those of its configuration's workloads.
    pub(super) fn groups(&self) -> Vec<GroupName> {
        self.workloads.borrow().iter().filter_map(|workload| workload.group.clone()).collect()
    }

    pub(super) fn is_up(&self) -> bool {
        self.body.borrow().is_up
    }

    pub(super) fn is_paused(&self) -> bool {
        self.body.borrow().pause.is_some()
    }

    pub(super) fn life(&self) -> u32 {
        self.body.borrow().life
    }

    /// A clock that never goes back, at this true time.
    pub(super) fn steady(&self, now: Timestamp) -> Timestamp {
        let body = self.body.borrow();
        let since = body.pause.filter(|pause| pause.stops_clock).map_or(0, |pause| now.0 - pause.since.0);
        Timestamp(now.0 - body.stood - since)
    }

    /// How long it has run without standing still, by its own clock; nothing while it stands still.
    pub(super) fn awake_for(&self, now: Timestamp) -> Duration {
        let awake_since = self.body.borrow().awake_since;
        if self.is_paused() { Duration::ZERO } else { self.steady(now).since(awake_since) }
    }

    pub(super) fn clocks(&self, now: Timestamp) -> Clocks {
        Clocks { steady: self.steady(now), wall: self.wall(now) }
    }

    pub(super) fn wall(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0 + self.body.borrow().ahead)
    }
}
