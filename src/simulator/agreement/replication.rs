//! How the log gets from its leader to the others, and becomes committed and applied.

use std::rc::Rc;
use std::time::Duration;

use super::{AT_ONCE, Append, Asker, Payload, Role, Slot};
use crate::machine::command::{Command, Entry, Verdict};
use crate::simulator::agenda::Due;
use crate::simulator::mistake::Mistake;
use crate::simulator::network::Message;
use crate::simulator::scenario::Fault;
use crate::simulator::verdict::Property;
use crate::simulator::world::World;

impl World {
    pub(super) fn broadcast(&self, vm: usize) {
        let voters = self.nodes[vm].kept.borrow().voters.clone();
        for other in voters.iter().filter(|other| **other != vm) {
            self.replicate(vm, *other);
        }
    }

    fn replicate(&self, vm: usize, to: usize) {
        let node = &self.nodes[vm];
        let append = {
            let (kept, mut agreement) = (node.kept.borrow(), node.agreement.borrow_mut());
            let next = *agreement.next.entry(to).or_insert(kept.log.len() + 1);
            let entries: Vec<Slot> = kept.log.iter().skip(next - 1).take(AT_ONCE).cloned().collect();
            Append {
                term: kept.term,
                previous: next - 1,
                previous_term: kept.term_at(next - 1),
                entries,
                committed: agreement.committed,
                sent: node.steady(self.now()),
            }
        };
        self.send(vm, to, Message::Append(append));
    }

    pub(in crate::simulator) fn on_append(self: &Rc<Self>, vm: usize, from: usize, append: &Append) {
        let node = &self.nodes[vm];
        let (term, sent) = (node.kept.borrow().term, append.sent);
        if append.term < term {
            return self.send(vm, from, Message::Appended { term, is_ok: false, matched: 0, sent });
        }
        self.step_down(vm, append.term);
        {
            let mut agreement = node.agreement.borrow_mut();
            agreement.leader = Some(from);
            agreement.heard = Some(node.steady(self.now()));
        }
        self.be_patient(vm);
        let (len, fits) = {
            let kept = node.kept.borrow();
            let fits = append.previous <= kept.log.len() && kept.term_at(append.previous) == append.previous_term;
            (kept.log.len(), fits)
        };
        if !fits {
            let matched = len.min(append.previous - 1);
            self.look_at_standing(vm);
            return self.send(vm, from, Message::Appended { term: append.term, is_ok: false, matched, sent });
        }
        let is_news = {
            let kept = node.kept.borrow();
            (append.previous + 1..).zip(&append.entries).any(|(position, slot)| kept.term_at(position) != slot.term)
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

    pub(in crate::simulator) fn on_appended(
        self: &Rc<Self>,
        vm: usize,
        from: usize,
        term: u64,
        is_ok: bool,
        matched: usize,
        sent: crate::machine::time::Timestamp,
    ) {
        let node = &self.nodes[vm];
        let own = node.kept.borrow().term;
        if term > own {
            return self.step_down(vm, term);
        }
        if term < own || node.agreement.borrow().role != Role::Leader {
            return;
        }
        let is_behind = {
            let (len, mut agreement) = (node.kept.borrow().log.len(), node.agreement.borrow_mut());
            let acknowledged = agreement.acknowledged.entry(from).or_insert(sent);
            *acknowledged = (*acknowledged).max(sent);
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
                let matched = agreement.matched.get(&voter).copied().unwrap_or(0);
                if voter == vm { kept.log.len() } else { matched }
            };
            let mut has: Vec<usize> = kept.voters.iter().map(|voter| has(*voter)).collect();
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
            (from + 1..).zip(kept.log[from.min(committed)..committed].iter().cloned()).collect()
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
            to <= chain.len() && (from + 1..=to).all(|position| chain.is(position, &kept.log[position - 1]))
        };
        if !is_agreed {
            return self.broke(Property::S9, format!("{} applies another log than the others", node.name));
        }
        node.kept.borrow_mut().applied = to;
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
        let position = node.kept.borrow().log.len();
        if let Some(asker) = asker {
            node.agreement.borrow_mut().waiting.insert(position, (term, asker));
        }
        self.broadcast(vm);
        self.advance(vm);
    }

    /// A leader removes whose VM is deleted: its last act beside consensus.
    pub(in crate::simulator) fn remove(self: &Rc<Self>, vm: usize, gone: usize) {
        let node = &self.nodes[vm];
        let (voters, is_settled) = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            let changed = kept.log.iter().rposition(|slot| matches!(slot.what, Payload::Voters(_)));
            let is_begun = kept.term_at(agreement.committed) == kept.term;
            (kept.voters.clone(), is_begun && changed.is_none_or(|changed| changed < agreement.committed))
        };
        let left: Vec<usize> = voters.iter().copied().filter(|voter| *voter != gone).collect();
        if is_settled && gone != vm && left.len() < voters.len() && !left.is_empty() {
            self.tell(|| format!("{} removes {} from the cluster", node.name, self.nodes[gone].name));
            self.append_slot(vm, Payload::Voters(Rc::new(left)), None);
        }
    }

    /// One write and its sync; false where the disk failed and the process with it.
    pub(in crate::simulator) fn write(&self, vm: usize, change: impl FnOnce(&mut super::Kept)) -> bool {
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
            let len = kept.log.len().saturating_sub(3);
            kept.truncate(len);
            kept.applied = kept.applied.min(len);
        }
        let applied = node.kept.borrow().applied;
        *node.agreement.borrow_mut() = super::Agreement { committed: applied, applied, ..super::Agreement::default() };
    }
}

fn take_over(kept: &mut super::Kept, append: &Append) {
    for (position, slot) in (append.previous + 1..).zip(&append.entries) {
        if kept.term_at(position) == slot.term {
            continue;
        }
        if position <= kept.log.len() {
            kept.truncate(position - 1);
        }
        kept.push(slot.clone());
    }
}
