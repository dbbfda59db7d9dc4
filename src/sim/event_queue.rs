//! The pending events of a world, and their times.

use std::collections::BTreeMap;

use super::endpoint::Letter;
use super::network::Envelope;
use super::program::Key;
use super::tasks::TaskId;
use allclear_core::model::time::Timestamp;

pub(super) enum QueuedEvent {
    Wake(TaskId),
    Deliver(Box<Envelope>),
    /// A heartbeat, or the end of an election timeout.
    Tick {
        vm: usize,
        life: u32,
        number: u32,
    },
    /// Committed entries are applied.
    Apply {
        vm: usize,
        life: u32,
    },
    /// A step of a running hook.
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
    /// The platform advances.
    Cloud,
    Heal,
    /// The oracle checks the progress.
    Judge,
}

impl QueuedEvent {
    /// The machine that has to run for the event; `None` if independent of a machine.
    pub(super) fn of(&self) -> Option<usize> {
        match self {
            Self::Deliver(envelope) => Some(envelope.to),
            Self::Tick { vm, .. } | Self::Apply { vm, .. } => Some(*vm),
            _ => None,
        }
    }
}

/// Ordered by time; simultaneous events by the order of their insertion.
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
