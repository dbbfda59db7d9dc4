//! Proposals and linearizable reads, as whoever asks for them sees them: forwarded to the leader, tried again where
//! nobody has taken them, and unknown where somebody may have.

use std::rc::Rc;
use std::time::Duration;

use super::{Asker, LEASE, Role};
use crate::machine::command::{Command, Verdict};
use crate::machine::time::Timestamp;
use crate::simulator::network::Message;
use crate::simulator::shell::Here;
use crate::simulator::tasks::{Answer, first};
use crate::simulator::world::World;

const DEADLINE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// A reader waits for a quorum to acknowledge what was sent after it had asked.
pub(super) struct Read {
    since: Timestamp,
    index: usize,
    asker: Reader,
}

#[derive(Clone)]
pub(super) enum Reader {
    Here(Answer<Option<usize>>),
    There { vm: usize, call: u64 },
}

/// Nobody knows what becomes of a proposal, or nobody has taken it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::simulator) struct NotKnown;

impl Here {
    pub(in crate::simulator) async fn propose(&self, command: &Command) -> Result<Verdict, NotKnown> {
        let deadline = self.steady().plus(DEADLINE);
        let command = Rc::new(command.clone());
        loop {
            let leader = self.world.nodes[self.me].agreement.borrow().leader;
            let tried = match leader {
                Some(leader) if self.world.standing(self.me).quorum || leader == self.me => Some(leader),
                _ => None,
            };
            let answer = match tried {
                None => None,
                Some(leader) if leader == self.me => {
                    let waiting = Answer::new();
                    match self.world.append(self.me, self.me, &command, Asker::Here(waiting.clone())) {
                        Some(()) => {
                            Some(self.within(deadline, waiting.get(&self.world.tasks)).await.unwrap_or(Err(())))
                        }
                        None => None,
                    }
                }
                Some(leader) => {
                    let (call, waiting) = self.process.call_proposal(leader);
                    let command = command.clone();
                    self.world.send(self.me, leader, Message::Propose { call, command });
                    let answer = self.within(deadline, waiting.get(&self.world.tasks)).await;
                    self.process.hang_up(call);
                    answer.unwrap_or(Some(Err(())))
                }
            };
            match answer {
                Some(answer) => return answer.map_err(|()| NotKnown),
                None if self.steady() >= deadline => return Err(NotKnown),
                None => self.sleep(PAUSE).await,
            }
        }
    }

    /// Proposes until it is in the log, applied or ignored.
    pub(in crate::simulator) async fn record(&self, command: &Command) -> Verdict {
        loop {
            if let Ok(verdict) = self.propose(command).await {
                return verdict;
            }
            self.sleep(Duration::from_millis(100)).await;
        }
    }

    /// A quorum says that who answers leads, and all that was committed by then is applied here.
    pub(in crate::simulator) async fn confirm(&self) -> Result<(), NotKnown> {
        let deadline = self.steady().plus(DEADLINE);
        let tasks = &self.world.tasks;
        let index = loop {
            let leader = self.world.nodes[self.me].agreement.borrow().leader;
            let index = match leader {
                None => None,
                Some(leader) if leader == self.me => {
                    let waiting = Answer::new();
                    self.world.read(self.me, Reader::Here(waiting.clone()));
                    self.within(deadline, waiting.get(tasks)).await.flatten()
                }
                Some(leader) => {
                    let (call, waiting) = self.process.call_read(leader);
                    self.world.send(self.me, leader, Message::Confirm { call });
                    let patience = deadline.min(self.steady().plus(LEASE * 2));
                    let index = self.within(patience, waiting.get(tasks)).await.flatten();
                    self.process.hang_up(call);
                    index
                }
            };
            match index {
                Some(index) => break index,
                None if self.steady() >= deadline => return Err(NotKnown),
                None => self.sleep(PAUSE).await,
            }
        };
        loop {
            let version = self.process.reached.version();
            if self.world.nodes[self.me].agreement.borrow().applied >= index {
                return Ok(());
            }
            if self.within(deadline, self.process.reached.changed(tasks, version)).await.is_none() {
                return Err(NotKnown);
            }
        }
    }

    /// `None` when it takes longer.
    pub(in crate::simulator) async fn within<T>(
        &self,
        deadline: Timestamp,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        first(work, self.sleep(deadline.since(self.steady()))).await.ok()
    }
}

impl World {
    pub(in crate::simulator) fn on_propose(self: &Rc<Self>, vm: usize, from: usize, call: u64, command: &Command) {
        let asker = Asker::There { vm: from, call };
        let disk = self.nodes[from].kept.borrow().disk;
        let is_member = self.nodes[vm].kept.borrow().members.is_member(from, disk);
        let taken = if is_member { self.append(vm, from, command, asker) } else { None };
        if taken.is_none() {
            self.send(vm, from, Message::Proposed { call, answer: None });
        }
    }

    pub(in crate::simulator) fn on_proposed(&self, vm: usize, call: u64, answer: Option<Result<Verdict, ()>>) {
        if let Some(process) = self.process(vm) {
            process.proposed(self, call, answer);
        }
    }

    pub(in crate::simulator) fn on_confirm(self: &Rc<Self>, vm: usize, from: usize, call: u64) {
        self.read(vm, Reader::There { vm: from, call });
    }

    pub(in crate::simulator) fn on_confirmed(&self, vm: usize, call: u64, index: Option<usize>) {
        if let Some(process) = self.process(vm) {
            process.confirmed(self, call, index);
        }
    }

    fn read(self: &Rc<Self>, vm: usize, asker: Reader) {
        let node = &self.nodes[vm];
        let since = node.steady(self.now());
        let index = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            // Before something of its own term is committed it does not know how far the log is.
            let knows = agreement.role == Role::Leader && kept.term_at(agreement.committed) == kept.term;
            knows.then_some(agreement.committed)
        };
        let read = Read { since, index: index.unwrap_or(0), asker };
        if index.is_none() {
            return self.answer_read(vm, &read, None);
        }
        node.agreement.borrow_mut().reads.push(read);
        self.broadcast(vm);
        self.answer_reads(vm);
    }

    pub(super) fn answer_reads(&self, vm: usize) {
        let node = &self.nodes[vm];
        let confirmed = {
            let (kept, mut agreement) = (node.kept.borrow(), node.agreement.borrow_mut());
            let acknowledged = agreement.acknowledged.clone();
            let is_confirmed = |read: &Read| {
                kept.is_quorum(|voter| voter == vm || acknowledged.get(&voter).is_some_and(|sent| *sent >= read.since))
            };
            let (confirmed, others) = agreement.reads.drain(..).partition(is_confirmed);
            agreement.reads = others;
            let confirmed: Vec<Read> = confirmed;
            confirmed
        };
        for read in confirmed {
            self.answer_read(vm, &read, Some(read.index));
        }
    }

    pub(super) fn answer_read(&self, vm: usize, read: &Read, index: Option<usize>) {
        match &read.asker {
            Reader::Here(waiting) => waiting.give(&self.tasks, index),
            Reader::There { vm: to, call } => self.send(vm, *to, Message::Confirmed { call: *call, index }),
        }
    }
}
