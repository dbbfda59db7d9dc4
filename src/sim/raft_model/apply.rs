//! How log entries become committed and applied, and how their waiters are notified.

use std::rc::Rc;
use std::time::Duration;

use super::stored::{LogSlot, Payload};
use super::{ModelRole, ProposalWaiter, Proposed};
use crate::event_queue::QueuedEvent;
use crate::network::ModelMessage;
use crate::scenario::FaultKind;
use crate::verdict::Property;
use crate::world::World;
use allclear_core::leadership::may_enter;
use allclear_core::model::command::{Command, Entry};

impl World {
    /// Entries stored by a quorum are committed, if the last entry is of this term.
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

    /// Extends the chain: all replicas agree on the committed entries.
    fn chain_up_to(self: &Rc<Self>, vm: usize, committed: usize) {
        let slots: Vec<LogSlot> = {
            let (kept, from) = (self.nodes[vm].kept.borrow(), self.chain.borrow().len());
            kept.behind(from).iter().take(committed.saturating_sub(from)).cloned().collect()
        };
        for slot in slots {
            // After a breach further checks prove nothing.
            if !self.is_broken() {
                self.commit(vm, &slot);
            }
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
            let slow = self.slowest(|at, kind| match kind {
                FaultKind::ApplySlow { by } if at == vm => Some(*by),
                _ => None,
            });
            self.put_in(slow.unwrap_or(Duration::from_millis(1)), QueuedEvent::Apply { vm, life: node.life() });
        }
    }

    pub(crate) fn apply(self: &Rc<Self>, vm: usize) {
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
            self.answer(vm, asker, Some(verdict.ok_or(())));
        }
    }

    fn answer(&self, vm: usize, asker: ProposalWaiter<Proposed>, answer: Proposed) {
        if asker.vm == vm {
            return asker.answer.give(&self.tasks, answer);
        }
        self.send(vm, asker.vm, ModelMessage::Proposed(asker.answer, answer));
    }

    /// A former leader does not know the result of its appended entries.
    pub(super) fn answer_nobody_knows(&self, vm: usize) {
        let (waiting, reads) = {
            let mut agreement = self.nodes[vm].agreement.borrow_mut();
            (std::mem::take(&mut agreement.waiting), std::mem::take(&mut agreement.reads))
        };
        for (_, asker) in waiting.into_values() {
            self.answer(vm, asker, Some(Err(())));
        }
        for read in reads {
            self.answer_read(vm, read.asker, None);
        }
    }

    /// Only a leader accepts a proposal.
    pub(crate) fn on_propose(self: &Rc<Self>, vm: usize, command: &Command, asker: ProposalWaiter<Proposed>) {
        let node = &self.nodes[vm];
        let by = &self.nodes[asker.vm];
        let is_member = node.kept.borrow().members.is_member(asker.vm, by.kept.borrow().disk);
        let is_leader = is_member && node.agreement.borrow().role == ModelRole::Leader;
        let Some(process) = self.process(vm).filter(|_| is_leader) else { return self.answer(vm, asker, None) };
        let Some(at) = process.stamp(self) else { return self.answer(vm, asker, None) };
        let status = self.status(vm);
        let leads = status.leads().then_some((status.term, status.turn));
        if !may_enter(&process.state(), leads, at, || matches!(command, Command::BeginLeadership(_))) {
            return self.answer(vm, asker, None);
        }
        self.judge_stamp(vm, at);
        let entry = Entry { at, by: by.name.clone(), command: command.clone() };
        self.append_slot(vm, Payload::Entry(Rc::new(entry)), Some(asker));
    }

    pub(super) fn append_slot(self: &Rc<Self>, vm: usize, what: Payload, asker: Option<ProposalWaiter<Proposed>>) {
        let node = &self.nodes[vm];
        let term = node.kept.borrow().term;
        if !self.write(vm, |kept| kept.push(LogSlot { term, what })) {
            return;
        }
        let position = node.kept.borrow().len();
        if let Some(asker) = asker {
            node.agreement.borrow_mut().waiting.insert(position, (term, asker));
        }
        self.broadcast(vm);
        self.advance(vm);
    }
}
