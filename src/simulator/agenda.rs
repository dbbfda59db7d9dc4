//! What is to happen in a world, and when.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::network::Envelope;
use super::program::Key;
use super::tasks::TaskId;
use crate::machine::time::Timestamp;

pub(super) enum Due {
    Wake(TaskId),
    Deliver(Box<Envelope>),
    /// A heartbeat, or the end of somebody's patience with a leader.
    Tick {
        vm: usize,
        life: u32,
        number: u32,
    },
    /// What is committed is applied.
    Apply {
        vm: usize,
        life: u32,
    },
    /// Something happens to a running hook.
    Program {
        vm: usize,
        boot: u32,
        key: Key,
        turn: u32,
    },
    /// A post arrives at the platform.
    Arrive(usize),
    Happening(usize),
    /// A pause, or a crash, is over.
    Resume {
        vm: usize,
        number: u32,
    },
    Restart {
        vm: usize,
        number: u32,
    },
    /// The platform goes on.
    Cloud,
    Heal,
    /// The judge looks at how far everything is.
    Judge,
}

impl Due {
    /// Whose machine has to run for it; nobody's otherwise.
    pub(super) fn of(&self) -> Option<usize> {
        match self {
            Self::Deliver(envelope) => Some(envelope.to),
            Self::Tick { vm, .. } | Self::Apply { vm, .. } => Some(*vm),
            _ => None,
        }
    }
}

struct Item {
    at: Timestamp,
    order: u64,
    due: Due,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[derive(Default)]
pub(super) struct Agenda {
    items: BinaryHeap<Reverse<Item>>,
    order: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: Timestamp, due: Due) {
        self.order += 1;
        self.items.push(Reverse(Item { at, order: self.order, due }));
    }

    /// The earliest; of several at the same time the one that was put first.
    pub(super) fn next(&mut self) -> Option<(Timestamp, u64, Due)> {
        self.items.pop().map(|Reverse(item)| (item.at, item.order, item.due))
    }
}
