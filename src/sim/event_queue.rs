//! What is to happen in a world, and when.

use std::collections::BTreeMap;

use super::endpoint::Letter;
use super::network::Envelope;
use super::program::Key;
use super::tasks::TaskId;
use allclear_core::model::time::Timestamp;

pub(super) enum QueuedEvent {
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
    Arrive(Box<Letter>),
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

impl QueuedEvent {
    /// Whose machine has to run for it; nobody's otherwise.
    pub(super) fn of(&self) -> Option<usize> {
        match self {
            Self::Deliver(envelope) => Some(envelope.to),
            Self::Tick { vm, .. } | Self::Apply { vm, .. } => Some(*vm),
            _ => None,
        }
    }
}

/// By their time; of several at the same time the one that was put first comes first.
#[derive(Default)]
pub(super) struct Agenda {
    items: BTreeMap<(Timestamp, u64), QueuedEvent>,
    order: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: Timestamp, due: QueuedEvent) {
        self.order += 1;
        self.items.insert((at, self.order), due);
    }

    pub(super) fn next(&mut self) -> Option<(Timestamp, u64, QueuedEvent)> {
        self.items.pop_first().map(|((at, order), due)| (at, order, due))
    }
}
