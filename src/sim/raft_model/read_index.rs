//! Proposals and linearizable reads, from the caller's side: forwarded to the leader, retried if no replica has
//! accepted them, and unknown if a replica may have.

use std::rc::Rc;
use std::time::Duration;

use super::{Confirmed, LEASE, ModelRole, ProposalWaiter};
use crate::network::ModelMessage;
use crate::replica_model::ModelContext;
use crate::tasks::{Oneshot, SignalChanges, first};
use crate::world::World;
use allclear_core::model::command::{ApplyResult, Command};
use allclear_core::model::time::Timestamp;

const DEADLINE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// A reader waits for a quorum to acknowledge a message sent after the read's start.
pub(super) struct PendingRead {
    since: Timestamp,
    index: usize,
    pub(super) asker: ProposalWaiter<Confirmed>,
}

/// The result of a proposal is unknown, or no replica has accepted the proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NotKnown;

impl ModelContext {
    pub(crate) async fn propose(&self, command: &Command) -> Result<ApplyResult, NotKnown> {
        let deadline = self.steady().plus(DEADLINE);
        let command = Rc::new(command.clone());
        loop {
            let leader = self.world.nodes[self.me].agreement.borrow().leader;
            let leader = leader.filter(|leader| self.status().quorum || *leader == self.me);
            let answer = match leader {
                None => None,
                Some(leader) => {
                    let asker = ProposalWaiter { vm: self.me, answer: Oneshot::new() };
                    let waiting = asker.answer.clone();
                    self.tell(leader, ModelMessage::Propose(command.clone(), asker));
                    // If another replica leads by now, the proposal may have been accepted or not.
                    let told = first(waiting.get(&self.world.tasks), self.is_led_by_another(leader));
                    self.within(deadline, told).await.and_then(Result::ok).unwrap_or(Some(Err(())))
                }
            };
            match answer {
                Some(answer) => return answer.map_err(|()| NotKnown),
                None if self.steady() >= deadline => return Err(NotKnown),
                None => self.sleep(PAUSE).await,
            }
        }
    }

    /// Delivers at once if `to` is this machine.
    fn tell(&self, to: usize, message: ModelMessage) {
        if to == self.me {
            self.world.take_message(to, to, message);
        } else {
            self.world.send(self.me, to, message);
        }
    }

    /// Returns when another replica leads.
    pub(crate) async fn is_led_by_another(&self, than: usize) {
        loop {
            let news = SignalChanges::of([&self.process.signals.status]);
            if self.status().leader.is_some_and(|leader| leader != than) {
                return;
            }
            news.come(&self.world.tasks).await;
        }
    }

    /// Proposes until the command is in the log, applied or rejected.
    pub(crate) async fn record(&self, command: &Command) -> ApplyResult {
        loop {
            if let Ok(verdict) = self.propose(command).await {
                return verdict;
            }
            self.sleep(Duration::from_millis(100)).await;
        }
    }

    /// A quorum confirms the leader, and everything committed by then is applied here.
    pub(crate) async fn confirm(&self) -> Result<(), NotKnown> {
        let deadline = self.steady().plus(DEADLINE);
        let tasks = &self.world.tasks;
        let index = loop {
            let leader = self.world.nodes[self.me].agreement.borrow().leader;
            let index = match leader {
                None => None,
                Some(leader) => {
                    let asker = ProposalWaiter { vm: self.me, answer: Oneshot::new() };
                    let waiting = asker.answer.clone();
                    self.tell(leader, ModelMessage::Confirm(asker));
                    let patience = deadline.min(self.steady().plus(LEASE * 2));
                    self.within(patience, waiting.get(tasks)).await.flatten()
                }
            };
            match index {
                Some(index) => break index,
                None if self.steady() >= deadline => return Err(NotKnown),
                None => self.sleep(PAUSE).await,
            }
        };
        loop {
            let news = SignalChanges::of([&self.process.signals.reached]);
            if self.world.nodes[self.me].agreement.borrow().applied >= index {
                return Ok(());
            }
            if self.within(deadline, news.come(tasks)).await.is_none() {
                return Err(NotKnown);
            }
        }
    }

    /// `None` if the work takes longer.
    pub(crate) async fn within<T>(&self, deadline: Timestamp, work: impl Future<Output = T>) -> Option<T> {
        first(work, self.sleep(deadline.since(self.steady()))).await.ok()
    }
}

impl World {
    pub(crate) fn on_confirm(self: &Rc<Self>, vm: usize, asker: ProposalWaiter<Confirmed>) {
        let node = &self.nodes[vm];
        let since = node.steady(self.now());
        let index = {
            let (kept, agreement) = (node.kept.borrow(), node.agreement.borrow());
            // Before the commit of an entry of its own term a leader does not know the end of the committed log.
            let knows = agreement.role == ModelRole::Leader && kept.term_at(agreement.committed) == kept.term;
            knows.then_some(agreement.committed)
        };
        let Some(index) = index else { return self.answer_read(vm, asker, None) };
        node.agreement.borrow_mut().reads.push(PendingRead { since, index, asker });
        self.broadcast(vm);
        self.answer_reads(vm);
    }

    pub(super) fn answer_reads(&self, vm: usize) {
        let node = &self.nodes[vm];
        let confirmed = {
            let (kept, mut agreement) = (node.kept.borrow(), node.agreement.borrow_mut());
            let acknowledged = agreement.acknowledged.clone();
            let is_confirmed = |read: &PendingRead| {
                kept.is_quorum(|voter| voter == vm || acknowledged.get(&voter).is_some_and(|sent| *sent >= read.since))
            };
            let (confirmed, others) = agreement.reads.drain(..).partition(is_confirmed);
            agreement.reads = others;
            let confirmed: Vec<PendingRead> = confirmed;
            confirmed
        };
        for read in confirmed {
            self.answer_read(vm, read.asker, Some(read.index));
        }
    }

    pub(super) fn answer_read(&self, vm: usize, asker: ProposalWaiter<Confirmed>, index: Confirmed) {
        if asker.vm == vm {
            return asker.answer.give(&self.tasks, index);
        }
        self.send(vm, asker.vm, ModelMessage::Confirmed(asker.answer, index));
    }
}
