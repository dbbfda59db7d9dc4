//! One VM with its replica: whether the VM runs, its clocks, and the content of its disk.

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
    /// The Raft state on the VM's disk.
    pub(super) kept: RefCell<ModelDisk>,
    pub(super) journal: RefCell<Vec<JournalEntry>>,
    /// The disk has no journal yet.
    pub(super) has_new_journal: Cell<bool>,
    /// The disk is new: unknown programs may have been started before this disk.
    pub(super) is_new: Cell<bool>,
    /// The programs outlive the process, not the machine.
    pub(super) programs: RefCell<BTreeMap<Key, Program>>,
    /// The Raft state of this run.
    pub(super) agreement: RefCell<Agreement>,
    pub(super) process: RefCell<Option<Rc<ProcessState>>>,
    /// The workloads of the VM's configuration.
    pub(super) workloads: RefCell<Vec<Workload>>,
    /// The current role of the configured workload.
    pub(super) role: Cell<Role>,
    /// The session workload, and whether the workload is connected.
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
    /// Counts process starts (`life`) and machine starts (`boot`).
    pub(super) life: u32,
    pub(super) boot: u32,
    /// Counts pauses and crashes, so that only the end of the last interruption counts.
    pub(super) downs: u32,
    pub(super) pause: Option<Pause>,
    /// Events that arrived while the machine was paused.
    pub(super) held: Vec<QueuedEvent>,
    /// How long the monotonic clock has stood still, in milliseconds.
    pub(super) stood: i64,
    /// The lead of the wall clock, in milliseconds.
    pub(super) ahead: i64,
    /// Start of the process, or the end of the last stop that its monotonic clock has counted; on this clock.
    pub(super) awake_since: Timestamp,
    /// The disk fails at the next write: with the data written, or without.
    pub(super) fails: Option<bool>,
    /// The process dies as soon as its current step is done.
    pub(super) is_doomed: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Pause {
    pub(super) since: Timestamp,
    pub(super) stops_clock: bool,
    /// Messages sent to the VM later than this are lost.
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

    /// The groups of the configured workloads.
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

    /// The monotonic clock at this true time.
    pub(super) fn steady(&self, now: Timestamp) -> Timestamp {
        let body = self.body.borrow();
        let since = body.pause.filter(|pause| pause.stops_clock).map_or(0, |pause| now.0 - pause.since.0);
        Timestamp(now.0 - body.stood - since)
    }

    /// How long the process has run without a stop, by its own clock; zero while the process is stopped.
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
