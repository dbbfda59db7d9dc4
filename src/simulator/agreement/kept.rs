//! What agreement has on a disk. Position 1 is the first entry; those up to a snapshot are gone.

use std::rc::Rc;

use super::members::Members;

pub(in crate::simulator) struct Kept {
    pub(in crate::simulator) term: u64,
    pub(in crate::simulator) voted: Option<usize>,
    snapshot: Snapshot,
    /// Behind the snapshot.
    log: Vec<Slot>,
    /// So much was known to be committed.
    pub(in crate::simulator) applied: usize,
    /// By the latest word on it in the log, committed or not.
    pub(in crate::simulator) members: Rc<Members>,
    /// Which one it is: counts those that were lost.
    pub(in crate::simulator) disk: u32,
}

/// What stands in place of the entries up to a position.
#[derive(Clone)]
pub(in crate::simulator) struct Snapshot {
    pub(super) position: usize,
    pub(super) term: u64,
    pub(super) members: Rc<Members>,
}

#[derive(Clone)]
pub(in crate::simulator) struct Slot {
    pub(in crate::simulator) term: u64,
    pub(in crate::simulator) what: Payload,
}

#[derive(Clone)]
pub(in crate::simulator) enum Payload {
    /// A leader begins.
    Blank,
    Entry(Rc<crate::machine::command::Entry>),
    /// Who belongs to the cluster from here on.
    Members(Rc<Members>),
}

impl Kept {
    pub(in crate::simulator) fn new(members: Rc<Members>) -> Self {
        let snapshot = Snapshot { position: 0, term: 0, members: members.clone() };
        Self { term: 0, voted: None, snapshot, log: Vec::new(), applied: 0, members, disk: 0 }
    }

    /// In place of one that was lost.
    pub(in crate::simulator) fn another(&self) -> Self {
        Self { disk: self.disk + 1, ..Self::new(Rc::new(Members::nobody(self.members.machines()))) }
    }

    pub(in crate::simulator) fn len(&self) -> usize {
        self.snapshot.position + self.log.len()
    }

    /// Up to here the entries themselves are gone.
    pub(super) fn begins(&self) -> usize {
        self.snapshot.position
    }

    pub(super) fn slot(&self, position: usize) -> Option<&Slot> {
        self.log.get(position.checked_sub(self.snapshot.position + 1)?)
    }

    /// The entries behind a position that still stand in the log.
    pub(in crate::simulator) fn behind(&self, position: usize) -> &[Slot] {
        self.log.get(position.saturating_sub(self.snapshot.position)..).unwrap_or_default()
    }

    pub(super) fn term_at(&self, position: usize) -> u64 {
        if position == self.snapshot.position {
            return self.snapshot.term;
        }
        self.slot(position).map_or(0, |slot| slot.term)
    }

    pub(super) fn last(&self) -> (u64, usize) {
        (self.term_at(self.len()), self.len())
    }

    pub(super) fn push(&mut self, slot: Slot) {
        if let Payload::Members(members) = &slot.what {
            self.members = members.clone();
        }
        self.log.push(slot);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.log.truncate(len.saturating_sub(self.snapshot.position));
        self.members = self.members_at(self.len());
    }

    fn members_at(&self, position: usize) -> Rc<Members> {
        let known = position.saturating_sub(self.snapshot.position).min(self.log.len());
        let word = self.log[..known].iter().rev().find_map(|slot| match &slot.what {
            Payload::Members(members) => Some(members.clone()),
            Payload::Blank | Payload::Entry(_) => None,
        });
        word.unwrap_or_else(|| self.snapshot.members.clone())
    }

    /// Of what is applied.
    pub(super) fn snapshot_at(&self, position: usize) -> Snapshot {
        Snapshot { position, term: self.term_at(position), members: self.members_at(position) }
    }

    /// What comes before it is not needed any more; what stands behind it is kept where it goes on from it.
    pub(super) fn install(&mut self, snapshot: &Snapshot) {
        let goes_on = snapshot.position <= self.len() && self.term_at(snapshot.position) == snapshot.term;
        self.log = if goes_on { self.behind(snapshot.position).to_vec() } else { Vec::new() };
        self.snapshot = snapshot.clone();
        self.applied = self.applied.max(snapshot.position);
        self.members = self.members_at(self.len());
    }

    /// So many of the voters are a quorum, if these are among them.
    pub(super) fn is_quorum(&self, is_among: impl Fn(usize) -> bool) -> bool {
        let voters = &self.members.voters;
        voters.iter().filter(|voter| is_among(**voter)).count() * 2 > voters.len()
    }

    /// The latest word on the members stands in the log behind this position.
    pub(super) fn is_changing(&self, committed: usize) -> bool {
        self.behind(committed).iter().any(|slot| matches!(slot.what, Payload::Members(_)))
    }
}
