//! The Raft state on a disk. Position 1 is the first entry.

use std::rc::Rc;

use super::members::ModelMembers;
use allclear_core::model::command::Entry;

pub(crate) struct ModelDisk {
    pub(crate) term: u64,
    pub(crate) voted: Option<usize>,
    log: Vec<LogSlot>,
    /// The number of entries known to be committed.
    pub(crate) applied: usize,
    /// Before the first membership in the log.
    first_members: Rc<ModelMembers>,
    /// The latest membership in the log, committed or not.
    pub(crate) members: Rc<ModelMembers>,
    /// The number of the disk: counts the lost disks.
    pub(crate) disk: u32,
}

#[derive(Clone, PartialEq)]
pub(crate) struct LogSlot {
    pub(crate) term: u64,
    pub(crate) what: Payload,
}

#[derive(Clone, PartialEq)]
pub(crate) enum Payload {
    /// The first entry of a leader.
    Blank,
    Entry(Rc<Entry>),
    /// The members of the cluster from here on.
    Members(Rc<ModelMembers>),
}

impl LogSlot {
    pub(super) fn entry(&self) -> Option<&Rc<Entry>> {
        match &self.what {
            Payload::Entry(entry) => Some(entry),
            Payload::Blank | Payload::Members(_) => None,
        }
    }
}

impl ModelDisk {
    pub(crate) fn new(members: Rc<ModelMembers>) -> Self {
        Self { term: 0, voted: None, log: Vec::new(), applied: 0, first_members: members.clone(), members, disk: 0 }
    }

    /// A new disk in place of a lost disk.
    pub(crate) fn another(&self) -> Self {
        Self { disk: self.disk + 1, ..Self::new(Rc::new(ModelMembers::nobody(self.members.machines()))) }
    }

    pub(crate) fn len(&self) -> usize {
        self.log.len()
    }

    pub(super) fn slot(&self, position: usize) -> Option<&LogSlot> {
        self.log.get(position.checked_sub(1)?)
    }

    pub(crate) fn behind(&self, position: usize) -> &[LogSlot] {
        self.log.get(position..).unwrap_or_default()
    }

    pub(super) fn term_at(&self, position: usize) -> u64 {
        self.slot(position).map_or(0, |slot| slot.term)
    }

    pub(super) fn last(&self) -> (u64, usize) {
        (self.term_at(self.len()), self.len())
    }

    pub(super) fn push(&mut self, slot: LogSlot) {
        if let Payload::Members(members) = &slot.what {
            self.members = members.clone();
        }
        self.log.push(slot);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.log.truncate(len);
        let word = self.log.iter().rev().find_map(|slot| match &slot.what {
            Payload::Members(members) => Some(members),
            Payload::Blank | Payload::Entry(_) => None,
        });
        self.members = word.unwrap_or(&self.first_members).clone();
    }

    /// True if the voters selected by `is_among` are a quorum.
    pub(super) fn is_quorum(&self, is_among: impl Fn(usize) -> bool) -> bool {
        let voters = &self.members.voters;
        voters.iter().filter(|voter| is_among(**voter)).count() * 2 > voters.len()
    }

    /// True if the log has a membership entry after this position.
    pub(super) fn is_changing(&self, committed: usize) -> bool {
        self.behind(committed).iter().any(|slot| matches!(slot.what, Payload::Members(_)))
    }
}
