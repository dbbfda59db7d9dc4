//! How the log gets from its leader to the other replicas.

use std::rc::Rc;
use std::time::Duration;

use super::stored::LogSlot;
use super::{AT_ONCE, Append, Appended, ModelDisk, ModelRole};
use crate::network::ModelMessage;
use crate::world::World;

impl World {
    pub(super) fn broadcast(&self, vm: usize) {
        let members = self.nodes[vm].kept.borrow().members.clone();
        for other in members.all().filter(|other| *other != vm) {
            self.replicate(vm, other);
        }
    }

    fn replicate(&self, vm: usize, to: usize) {
        let node = &self.nodes[vm];
        let append = {
            let (kept, mut agreement) = (node.kept.borrow(), node.agreement.borrow_mut());
            let next = *agreement.next.entry(to).or_insert(kept.len() + 1);
            let (term, sent) = (kept.term, node.steady(self.now()));
            let entries: Vec<LogSlot> = kept.behind(next - 1).iter().take(AT_ONCE).cloned().collect();
            let (previous, previous_term) = (next - 1, kept.term_at(next - 1));
            Append { term, previous, previous_term, entries, committed: agreement.committed, sent }
        };
        self.send(vm, to, ModelMessage::Append(append));
    }

    pub(crate) fn on_append(self: &Rc<Self>, vm: usize, from: usize, append: &Append) {
        let node = &self.nodes[vm];
        let (term, sent) = (node.kept.borrow().term, append.sent);
        if append.term < term {
            return self.send(vm, from, ModelMessage::Appended(Appended { term, is_ok: false, matched: 0, sent }));
        }
        self.follow(vm, from, append.term);
        let (len, fits) = {
            let kept = node.kept.borrow();
            let fits = append.previous <= kept.len() && kept.term_at(append.previous) == append.previous_term;
            (kept.len(), fits)
        };
        if !fits {
            let matched = len.min(append.previous - 1);
            self.look_at_standing(vm);
            return self.send(
                vm,
                from,
                ModelMessage::Appended(Appended { term: append.term, is_ok: false, matched, sent }),
            );
        }
        let is_news = {
            let kept = node.kept.borrow();
            let mut slots = (append.previous + 1..).zip(&append.entries);
            slots.any(|(position, slot)| kept.term_at(position) != slot.term)
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
        self.send_after(
            after,
            vm,
            from,
            ModelMessage::Appended(Appended { term: append.term, is_ok: true, matched, sent }),
        );
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

    pub(crate) fn on_appended(self: &Rc<Self>, vm: usize, from: usize, appended: &Appended) {
        let Appended { term, is_ok, matched, sent } = *appended;
        let node = &self.nodes[vm];
        let own = node.kept.borrow().term;
        if term > own {
            return self.step_down(vm, term);
        }
        if term < own || node.agreement.borrow().role != ModelRole::Leader {
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
}

fn take_over(kept: &mut ModelDisk, append: &Append) {
    for (position, slot) in (append.previous + 1..).zip(&append.entries) {
        if kept.term_at(position) == slot.term {
            continue;
        }
        if position <= kept.len() {
            kept.truncate(position - 1);
        }
        kept.push(slot.clone());
    }
}
