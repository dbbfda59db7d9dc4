//! Elections: timeouts, the pre-vote, the vote, and the leadership transfer.

use std::rc::Rc;
use std::time::Duration;

use super::stored::{LogSlot, Payload};
use super::{Ballot, ELECTION_LEAST, ELECTION_MOST, HEARTBEAT, LEASE, ModelRole, ModelVote};
use crate::event_queue::QueuedEvent;
use crate::network::ModelMessage;
use crate::world::World;

impl World {
    /// Called when a process begins, and at every tick.
    pub(crate) fn tick(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        let now = node.steady(self.now());
        let (role, patience) = {
            let agreement = node.agreement.borrow();
            (agreement.role, agreement.patience)
        };
        let wait = if role == ModelRole::Leader {
            self.broadcast(vm);
            HEARTBEAT
        } else if now >= patience {
            let is_voter = {
                let kept = node.kept.borrow();
                kept.members.is_voter(vm, kept.disk)
            };
            self.be_patient(vm);
            if is_voter {
                self.stand(vm, true, false);
            }
            node.agreement.borrow().patience.since(now)
        } else {
            patience.since(now)
        };
        self.look_at_standing(vm);
        // A replica that has just been elected continues as the leader.
        let wait = if node.agreement.borrow().role == ModelRole::Leader { HEARTBEAT } else { wait };
        self.tick_in(vm, wait.max(Duration::from_millis(1)));
    }

    fn tick_in(&self, vm: usize, wait: Duration) {
        let node = &self.nodes[vm];
        let number = {
            let mut agreement = node.agreement.borrow_mut();
            agreement.ticks += 1;
            agreement.ticks
        };
        self.put_in(wait, QueuedEvent::Tick { vm, life: node.life(), number });
    }

    pub(super) fn be_patient(&self, vm: usize) {
        let span = self.random.borrow_mut().millis(ELECTION_LEAST, ELECTION_MOST);
        let node = &self.nodes[vm];
        node.agreement.borrow_mut().patience = node.steady(self.now()).plus(span);
    }

    fn stand(self: &Rc<Self>, vm: usize, is_pre: bool, is_transfer: bool) {
        let node = &self.nodes[vm];
        if !is_pre && !self.write(vm, |kept| (kept.term, kept.voted) = (kept.term + 1, Some(vm))) {
            return;
        }
        let (ballot, members) = {
            let kept = node.kept.borrow();
            let term = if is_pre { kept.term + 1 } else { kept.term };
            (Ballot { term, last: kept.last(), is_pre, is_transfer }, kept.members.clone())
        };
        {
            let mut agreement = node.agreement.borrow_mut();
            agreement.role = ModelRole::Candidate { is_pre };
            agreement.leader = None;
            agreement.votes = [vm].into();
        }
        for other in members.voters.iter().filter(|other| **other != vm) {
            self.send(vm, *other, ModelMessage::AskVote(ballot.clone()));
        }
        self.count_votes(vm);
    }

    pub(crate) fn on_ballot(self: &Rc<Self>, vm: usize, from: usize, ballot: &Ballot) {
        let node = &self.nodes[vm];
        let now = node.steady(self.now());
        let (term, last, voted) = {
            let kept = node.kept.borrow();
            (kept.term, kept.last(), kept.voted)
        };
        let hears_a_leader = {
            let agreement = node.agreement.borrow();
            let heard = agreement.heard.is_some_and(|heard| now.since(heard) < LEASE);
            agreement.role == ModelRole::Leader && self.standing_has_quorum(&agreement, vm) || heard
        };
        let is_up_to_date = ballot.last >= last;
        let waits = hears_a_leader && !ballot.is_transfer;
        if ballot.is_pre {
            let is_granted = ballot.term > term && is_up_to_date && !waits;
            // A candidate with an older term receives the current term, as otherwise no election could succeed.
            let term = if is_granted { ballot.term } else { term };
            return self.send(vm, from, ModelMessage::Vote(ModelVote { term, is_pre: true, is_granted }));
        }
        if waits && ballot.term > term {
            return;
        }
        let may = ballot.term > term || (ballot.term == term && voted.is_none_or(|voted| voted == from));
        let is_granted = may && is_up_to_date;
        if ballot.term > term {
            self.step_down(vm, ballot.term);
        }
        if is_granted {
            if !self.write(vm, |kept| kept.voted = Some(from)) {
                return;
            }
            self.be_patient(vm);
        }
        let term = node.kept.borrow().term;
        self.send_after(
            self.disk_time(vm),
            vm,
            from,
            ModelMessage::Vote(ModelVote { term, is_pre: false, is_granted }),
        );
    }

    fn standing_has_quorum(&self, agreement: &super::Agreement, vm: usize) -> bool {
        let now = self.nodes[vm].steady(self.now());
        let recent = |voter: usize| {
            voter == vm || agreement.acknowledged.get(&voter).is_some_and(|sent| now.since(*sent) < LEASE)
        };
        self.nodes[vm].kept.borrow().is_quorum(recent)
    }

    pub(crate) fn on_vote(self: &Rc<Self>, vm: usize, from: usize, vote: &ModelVote) {
        let ModelVote { term, is_pre, is_granted } = *vote;
        let node = &self.nodes[vm];
        let own = node.kept.borrow().term;
        if term > own && !(is_pre && is_granted) {
            return self.step_down(vm, term);
        }
        let counts = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            let is_candidate = agreement.role == (ModelRole::Candidate { is_pre });
            let is_voter = kept.members.is_voter(from, self.nodes[from].kept.borrow().disk);
            is_candidate && is_voter && term == own + u64::from(is_pre) && is_granted
        };
        if counts {
            node.agreement.borrow_mut().votes.insert(from);
            self.count_votes(vm);
        }
    }

    fn count_votes(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        let (role, has_won) = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            (agreement.role, kept.is_quorum(|voter| agreement.votes.contains(&voter)))
        };
        match role {
            ModelRole::Candidate { is_pre: true } if has_won => self.stand(vm, false, false),
            ModelRole::Candidate { is_pre: false } if has_won => self.begin_to_lead(vm),
            _ => {}
        }
    }

    fn begin_to_lead(self: &Rc<Self>, vm: usize) {
        let node = &self.nodes[vm];
        let len = node.kept.borrow().len();
        {
            let mut agreement = node.agreement.borrow_mut();
            agreement.role = ModelRole::Leader;
            agreement.leader = Some(vm);
            agreement.next = node.kept.borrow().members.all().map(|member| (member, len + 1)).collect();
            agreement.matched.clear();
            agreement.disks.clear();
            agreement.acknowledged.clear();
        }
        self.tell(|| format!("{} is elected for term {}", node.name, node.kept.borrow().term));
        let term = node.kept.borrow().term;
        if !self.write(vm, |kept| kept.push(LogSlot { term, what: Payload::Blank })) {
            return;
        }
        self.broadcast(vm);
        self.advance(vm);
        self.look_at_standing(vm);
        self.tick_in(vm, HEARTBEAT);
    }

    /// A later term is known; the replica follows no leader yet.
    pub(super) fn step_down(&self, vm: usize, term: u64) {
        let node = &self.nodes[vm];
        let is_later = term > node.kept.borrow().term;
        if is_later && !self.write(vm, |kept| (kept.term, kept.voted) = (term, None)) {
            return;
        }
        let was_leader = {
            let mut agreement = node.agreement.borrow_mut();
            if is_later {
                agreement.leader = None;
            }
            std::mem::take(&mut agreement.role) == ModelRole::Leader
        };
        if was_leader {
            self.answer_nobody_knows(vm);
            self.be_patient(vm);
        }
        self.look_at_standing(vm);
    }

    pub(crate) fn on_lead_now(self: &Rc<Self>, vm: usize, term: u64) {
        let kept_term = self.nodes[vm].kept.borrow().term;
        if kept_term == term && self.nodes[vm].agreement.borrow().role != ModelRole::Leader {
            self.stand(vm, false, true);
        }
    }

    /// Requests the transfer of leadership to a replica with the complete log; false if the replica lacks entries.
    pub(crate) fn hand_over(&self, vm: usize, to: usize) -> bool {
        let node = &self.nodes[vm];
        let (term, len) = {
            let kept = node.kept.borrow();
            (kept.term, kept.len())
        };
        let has_all = node.agreement.borrow().matched.get(&to).is_some_and(|matched| *matched >= len);
        if has_all {
            self.send(vm, to, ModelMessage::LeadNow { term });
        }
        has_all
    }

    /// The replica campaigns before isolated approvals, with the new term on the disk: the previous leader has to be
    /// elected anew. False if the disk failed.
    pub(crate) fn fence(self: &Rc<Self>, vm: usize) -> bool {
        let node = &self.nodes[vm];
        if node.agreement.borrow().role != ModelRole::Leader {
            self.be_patient(vm);
            self.stand(vm, false, false);
        }
        !node.body.borrow().is_doomed
    }
}
