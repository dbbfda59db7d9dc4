//! How the log gets from its leader to the others, and becomes committed and applied.

use std::rc::Rc;
use std::time::Duration;

use super::kept::{Payload, Slot, Snapshot};
use super::{AT_ONCE, Append, Asker, Kept, Role};
use crate::machine::command::{Command, Entry, Verdict};
use crate::machine::time::Timestamp;
use crate::simulator::agenda::Due;
use crate::simulator::mistake::Mistake;
use crate::simulator::network::Message;
use crate::simulator::scenario::Fault;
use crate::simulator::verdict::Property;
use crate::simulator::world::World;

/// Of what a snapshot stands for so much is kept, for those who are a little behind.
const KEPT_BEHIND: usize = 5;

impl World {
    pub(super) fn broadcast(&self, vm: usize) {
        let members = self.nodes[vm].kept.borrow().members.clone();
        for other in members.all().filter(|other| *other != vm) {
            self.replicate(vm, other);
        }
    }

    fn replicate(&self, vm: usize, to: usize) {
        let node = &self.nodes[vm];
        let message = {
            let (kept, mut agreement) = (node.kept.borrow(), node.agreement.borrow_mut());
            let next = *agreement.next.entry(to).or_insert(kept.len() + 1);
            let (term, sent) = (kept.term, node.steady(self.now()));
            if next <= kept.begins() || !self.chain.borrow().knows(next - 1) {
                Message::Install { term, snapshot: kept.snapshot_at(agreement.applied), sent }
            } else {
                let entries: Vec<Slot> = kept.behind(next - 1).iter().take(AT_ONCE).cloned().collect();
                let (previous, previous_term) = (next - 1, kept.term_at(next - 1));
                Message::Append(Append { term, previous, previous_term, entries, committed: agreement.committed, sent })
            }
        };
        self.send(vm, to, message);
    }

    pub(in crate::simulator) fn on_append(self: &Rc<Self>, vm: usize, from: usize, append: &Append) {
        let node = &self.nodes[vm];
        let (term, sent) = (node.kept.borrow().term, append.sent);
        if append.term < term {
            return self.send(vm, from, Message::Appended { term, is_ok: false, matched: 0, sent });
        }
        self.follow(vm, from, append.term);
        let (len, fits) = {
            let kept = node.kept.borrow();
            // What a snapshot stands for is the same everywhere.
            let fits = append.previous < kept.begins()
                || (append.previous <= kept.len() && kept.term_at(append.previous) == append.previous_term);
            (kept.len(), fits)
        };
        if !fits {
            let matched = len.min(append.previous - 1);
            self.look_at_standing(vm);
            return self.send(vm, from, Message::Appended { term: append.term, is_ok: false, matched, sent });
        }
        let is_news = {
            let kept = node.kept.borrow();
            let mut slots = (append.previous + 1..).zip(&append.entries);
            slots.any(|(position, slot)| position > kept.begins() && kept.term_at(position) != slot.term)
        };
        if is_news && !self.write(vm, |kept| take_over(kept, append)) {
            return;
        }
        let matched = append.previous + append.entries.len();
        {
            let mut agreement = node.agreement.borrow_mut();
            agreement.committed = agreement.committed.max(append.committed.min(matched));
        }
        self.apply_soon(vm);
        self.look_at_standing(vm);
        let after = if is_news { self.disk_time(vm) } else { Duration::ZERO };
        self.send_after(after, vm, from, Message::Appended { term: append.term, is_ok: true, matched, sent });
    }

    fn follow(&self, vm: usize, leader: usize, term: u64) {
        self.step_down(vm, term);
        let node = &self.nodes[vm];
        {
            let mut agreement = node.agreement.borrow_mut();
            agreement.leader = Some(leader);
            agreement.heard = Some(node.steady(self.now()));
        }
        self.be_patient(vm);
    }

    /// It takes the leader's word for all that is applied there.
    pub(in crate::simulator) fn on_install(
        self: &Rc<Self>,
        vm: usize,
        from: usize,
        term: u64,
        snapshot: &Snapshot,
        sent: Timestamp,
    ) {
        let node = &self.nodes[vm];
        let own = node.kept.borrow().term;
        if term < own {
            return self.send(vm, from, Message::Appended { term: own, is_ok: false, matched: 0, sent });
        }
        self.follow(vm, from, term);
        let (before, matched) = (node.agreement.borrow().applied, snapshot.position);
        if before < matched {
            if !self.write(vm, |kept| kept.install(snapshot)) {
                return;
            }
            self.tell(|| format!("{} takes a snapshot over, of {matched} entries", node.name));
            {
                let mut agreement = node.agreement.borrow_mut();
                agreement.applied = matched;
                agreement.committed = agreement.committed.max(matched);
            }
            let is_news = self.chain.borrow().is_news(before, matched);
            if let Some(process) = self.process(vm) {
                process.applied(self, is_news);
            }
        }
        self.look_at_standing(vm);
        self.send_after(self.disk_time(vm), vm, from, Message::Appended { term, is_ok: true, matched, sent });
    }

    pub(in crate::simulator) fn on_appended(
        self: &Rc<Self>,
        vm: usize,
        from: usize,
        term: u64,
        is_ok: bool,
        matched: usize,
        sent: Timestamp,
    ) {
        let node = &self.nodes[vm];
        let own = node.kept.borrow().term;
        if term > own {
            return self.step_down(vm, term);
        }
        if term < own || node.agreement.borrow().role != Role::Leader {
            return;
        }
        let disk = self.nodes[from].kept.borrow().disk;
        let is_behind = {
            let (kept, mut agreement) = (node.kept.borrow(), node.agreement.borrow_mut());
            let len = kept.len();
            if agreement.disks.insert(from, disk).is_some_and(|before| before != disk) {
                agreement.matched.remove(&from);
                agreement.acknowledged.remove(&from);
            }
            if kept.members.is_voter(from, disk) {
                let acknowledged = agreement.acknowledged.entry(from).or_insert(sent);
                *acknowledged = (*acknowledged).max(sent);
            }
            if is_ok {
                let known = agreement.matched.entry(from).or_default();
                let is_news = matched > *known;
                *known = matched.max(*known);
                let next = *known + 1;
                agreement.next.insert(from, next);
                is_news && next <= len
            } else {
                agreement.next.insert(from, matched + 1);
                true
            }
        };
        self.advance(vm);
        self.answer_reads(vm);
        self.look_at_standing(vm);
        if is_behind {
            self.replicate(vm, from);
        }
    }

    /// What a quorum has is committed, if it is of this term.
    pub(super) fn advance(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        let committed = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            let has = |voter: usize| {
                let is_it = agreement.disks.get(&voter).is_some_and(|disk| kept.members.is_known(voter, *disk));
                let matched = agreement.matched.get(&voter).copied().filter(|_| is_it).unwrap_or(0);
                if voter == vm { kept.len() } else { matched }
            };
            let mut has: Vec<usize> = kept.members.voters.iter().map(|voter| has(*voter)).collect();
            has.sort_unstable();
            let by_quorum = has.get(has.len().saturating_sub(1) / 2).copied().unwrap_or(0);
            (by_quorum > agreement.committed && kept.term_at(by_quorum) == kept.term).then_some(by_quorum)
        };
        if let Some(committed) = committed {
            node.agreement.borrow_mut().committed = committed;
            self.chain_up_to(vm, committed);
            self.apply_soon(vm);
            self.broadcast(vm);
        }
    }

    /// All replicas agree on what is committed.
    fn chain_up_to(self: &Rc<Self>, vm: usize, committed: usize) {
        let slots: Vec<(usize, Slot)> = {
            let (kept, from) = (self.nodes[vm].kept.borrow(), self.chain.borrow().len());
            (from + 1..=committed).zip(kept.behind(from).iter().cloned()).collect()
        };
        for (_, slot) in slots {
            self.commit(vm, &slot);
        }
    }

    pub(super) fn apply_soon(&self, vm: usize) {
        let node = &self.nodes[vm];
        let is_due = {
            let mut agreement = node.agreement.borrow_mut();
            let is_due = agreement.committed > agreement.applied && !agreement.is_applying;
            agreement.is_applying |= is_due;
            is_due
        };
        if is_due {
            let slow = self.slowest(|fault| match fault {
                Fault::ApplySlow { vm: slow, by, .. } if *slow == vm => Some(*by),
                _ => None,
            });
            self.put_in(slow.unwrap_or(Duration::from_millis(1)), Due::Apply { vm, life: node.life() });
        }
    }

    pub(in crate::simulator) fn apply(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        let (from, to) = {
            let mut agreement = node.agreement.borrow_mut();
            agreement.is_applying = false;
            let (from, to) = (agreement.applied, agreement.committed);
            agreement.applied = to;
            (from, to)
        };
        let is_agreed = {
            let (kept, chain) = (node.kept.borrow(), self.chain.borrow());
            let is_same = |position| kept.slot(position).is_some_and(|slot| chain.is(position, slot));
            to <= chain.len() && (from + 1..=to).all(is_same)
        };
        if !is_agreed {
            return self.broke(Property::S9, format!("{} applies another log than the others", node.name));
        }
        {
            let mut kept = node.kept.borrow_mut();
            kept.applied = to;
            if to - kept.begins() >= self.scenario.snapshot_every {
                let snapshot = kept.snapshot_at(to.saturating_sub(KEPT_BEHIND).max(kept.begins()));
                kept.install(&snapshot);
            }
        }
        let is_news = self.chain.borrow().is_news(from, to);
        if let Some(process) = self.process(vm) {
            process.applied(self, is_news);
        }
        let told = {
            let mut agreement = node.agreement.borrow_mut();
            let later = agreement.waiting.split_off(&(to + 1));
            std::mem::replace(&mut agreement.waiting, later)
        };
        for (position, (term, asker)) in told {
            let verdict = self.chain.borrow().verdict(position, term);
            self.answer(vm, &asker, verdict.map_or(Some(Err(())), |verdict| Some(Ok(verdict))));
        }
    }

    pub(super) fn answer(&self, vm: usize, asker: &Asker, answer: Option<Result<Verdict, ()>>) {
        match asker {
            Asker::Here(waiting) => waiting.give(&self.tasks, answer.unwrap_or(Err(()))),
            Asker::There { vm: to, call } => self.send(vm, *to, Message::Proposed { call: *call, answer }),
        }
    }

    /// Whoever leads no more cannot tell what becomes of what it appended.
    pub(super) fn answer_nobody_knows(&self, vm: usize) {
        let (waiting, reads) = {
            let mut agreement = self.nodes[vm].agreement.borrow_mut();
            (std::mem::take(&mut agreement.waiting), std::mem::take(&mut agreement.reads))
        };
        for (_, asker) in waiting.values() {
            self.answer(vm, asker, Some(Err(())));
        }
        for read in reads {
            self.answer_read(vm, &read, None);
        }
    }

    /// As the leader; `None` where it is not.
    pub(in crate::simulator) fn append(
        self: &Rc<Self>,
        vm: usize,
        by: usize,
        command: &Command,
        asker: Asker,
    ) -> Option<()> {
        let node = &self.nodes[vm];
        let process = self.process(vm).filter(|_| node.agreement.borrow().role == Role::Leader)?;
        // Only the leader stamps.
        let at = process.stamp(self, vm);
        let entry = Entry { at, by: self.nodes[by].name.clone(), command: command.clone() };
        self.append_slot(vm, Payload::Entry(Rc::new(entry)), Some(asker));
        Some(())
    }

    pub(super) fn append_slot(self: &Rc<Self>, vm: usize, what: Payload, asker: Option<Asker>) {
        let node = &self.nodes[vm];
        let term = node.kept.borrow().term;
        if !self.write(vm, |kept| kept.push(Slot { term, what })) {
            return;
        }
        let position = node.kept.borrow().len();
        if let Some(asker) = asker {
            node.agreement.borrow_mut().waiting.insert(position, (term, asker));
        }
        self.broadcast(vm);
        self.advance(vm);
    }

    /// One write and its sync; false where the disk failed and the process with it.
    pub(in crate::simulator) fn write(&self, vm: usize, change: impl FnOnce(&mut Kept)) -> bool {
        let node = &self.nodes[vm];
        if node.body.borrow().is_doomed {
            return false;
        }
        let fails = node.body.borrow_mut().fails.take();
        if fails != Some(false) {
            change(&mut node.kept.borrow_mut());
        }
        if fails.is_some() {
            self.doom(vm);
        }
        fails.is_none()
    }

    pub(in crate::simulator) fn disk_time(&self, vm: usize) -> Duration {
        let slow = self.slowest(|fault| match fault {
            Fault::DiskSlow { vm: slow, by, .. } if *slow == vm => Some(*by),
            _ => None,
        });
        slow.unwrap_or(Duration::from_millis(1))
    }

    /// What a restart finds on the disk.
    pub(in crate::simulator) fn read_back(&self, vm: usize) {
        let node = &self.nodes[vm];
        if self.mistake == Mistake::LogNotSynced {
            let mut kept = node.kept.borrow_mut();
            let len = kept.len().saturating_sub(3).max(kept.begins());
            kept.truncate(len);
            kept.applied = kept.applied.min(len);
        }
        let applied = node.kept.borrow().applied;
        *node.agreement.borrow_mut() = super::Agreement { committed: applied, applied, ..super::Agreement::default() };
    }
}

fn take_over(kept: &mut Kept, append: &Append) {
    for (position, slot) in (append.previous + 1..).zip(&append.entries) {
        if position <= kept.begins() || kept.term_at(position) == slot.term {
            continue;
        }
        if position <= kept.len() {
            kept.truncate(position - 1);
        }
        kept.push(slot.clone());
    }
}
