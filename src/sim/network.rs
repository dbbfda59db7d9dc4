//! Messages between replicas, and their delivery: late, twice, in another order, or not at all.

use std::rc::Rc;
use std::time::Duration;

use super::event_queue::QueuedEvent;
use super::raft_model::{Append, Appended, Ballot, Confirmed, ModelVote, ProposalWaiter, Proposed};
use super::scenario::FaultKind;
use super::tasks::Oneshot;
use super::world::World;
use allclear_core::cluster_time::{ClockReading, Trust};
use allclear_core::model::command::Command;
use allclear_core::model::isolation::PeerAnswer;
use allclear_core::model::time::Timestamp;
use allclear_core::peer_table::{ImdsReport, LeaderView};

pub(super) struct Envelope {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The connection ends with either process.
    from_life: u32,
    to_life: u32,
    from_disk: u32,
    pub(super) message: ModelMessage,
}

#[derive(Clone)]
pub(super) enum ModelMessage {
    Append(Append),
    Appended(Appended),
    AskVote(Ballot),
    Vote(ModelVote),
    /// Request to take over leadership.
    LeadNow {
        term: u64,
    },
    Propose(Rc<Command>, ProposalWaiter<Proposed>),
    Proposed(Oneshot<Proposed>, Proposed),
    Confirm(ProposalWaiter<Confirmed>),
    Confirmed(Oneshot<Confirmed>, Confirmed),
    Beat {
        health: ImdsReport,
        operator_seq: u64,
        reading: ClockReading,
        /// The base of the time used for the reading; `None` if this was not the leader's time.
        base: Option<i64>,
        /// The cluster's time, if known to the sender.
        known: Option<Timestamp>,
    },
    Reply {
        told: LeaderView,
        time: Timestamp,
        base: i64,
        trust: Trust,
    },
    AskPeer,
    Peer(PeerAnswer),
}

impl World {
    pub(super) fn send(&self, from: usize, to: usize, message: ModelMessage) {
        self.send_after(Duration::ZERO, from, to, message);
    }

    /// `after` is the delay before the message leaves.
    pub(super) fn send_after(&self, after: Duration, from: usize, to: usize, message: ModelMessage) {
        if self.is_cut(from, to) {
            return;
        }
        if matches!(message, ModelMessage::Proposed(..)) && self.is_hit(|kind| *kind == FaultKind::Unanswered) {
            return;
        }
        let again = matches!(message, ModelMessage::Propose(..) | ModelMessage::Append(_) | ModelMessage::Appended(_))
            && self.is_hit(|kind| *kind == FaultKind::Twice);
        if again {
            let later = self.random.borrow_mut().millis(1, 8000);
            self.post_letter(after + later, from, to, message.clone());
        }
        self.post_letter(after, from, to, message);
    }

    fn post_letter(&self, after: Duration, from: usize, to: usize, message: ModelMessage) {
        let way = self.random.borrow_mut().millis(0, 2);
        let slow = self.slowest(|_, kind| if let FaultKind::Slow { by } = kind { Some(*by) } else { None });
        let extra = slow.map_or(Duration::ZERO, |by| {
            let most = u64::try_from(by.as_millis()).unwrap_or(0);
            self.random.borrow_mut().millis(0, most)
        });
        let (from_life, to_life) = (self.nodes[from].life(), self.nodes[to].life());
        let from_disk = self.nodes[from].kept.borrow().disk;
        let envelope = Envelope { from, to, from_life, to_life, from_disk, message };
        self.put_in(after + way + extra, QueuedEvent::Deliver(Box::new(envelope)));
    }

    /// No message passes in this direction; counts as an effect of the cut.
    pub(super) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.is_hit(|kind| match kind {
            FaultKind::Cut { vms, both } => {
                let (near, far) = (vms.contains(&from), vms.contains(&to));
                near != far && (*both || near)
            }
            _ => false,
        })
    }

    pub(super) fn deliver(self: &Rc<Self>, envelope: Envelope) {
        let Envelope { from, to, from_life, to_life, from_disk, message } = envelope;
        let is_there = |vm: usize, life: u32| self.nodes[vm].is_up() && self.nodes[vm].life() == life;
        // A message of a replica whose disk was lost since is dropped.
        if !is_there(to, to_life) || from_disk != self.nodes[from].kept.borrow().disk {
            return;
        }
        // A proposal or a vote is accepted even if the sending process has ended.
        if from_life != self.nodes[from].life() && matches!(message, ModelMessage::AskPeer | ModelMessage::Confirm(_)) {
            return;
        }
        self.take_message(to, from, message);
    }

    pub(super) fn take_message(self: &Rc<Self>, to: usize, from: usize, message: ModelMessage) {
        match message {
            ModelMessage::Append(append) => self.on_append(to, from, &append),
            ModelMessage::Appended(appended) => self.on_appended(to, from, &appended),
            ModelMessage::AskVote(ballot) => self.on_ballot(to, from, &ballot),
            ModelMessage::Vote(vote) => self.on_vote(to, from, &vote),
            ModelMessage::LeadNow { term } => self.on_lead_now(to, term),
            ModelMessage::Propose(command, asker) => self.on_propose(to, &command, asker),
            ModelMessage::Proposed(waiting, answer) => waiting.give(&self.tasks, answer),
            ModelMessage::Confirm(asker) => self.on_confirm(to, asker),
            ModelMessage::Confirmed(waiting, index) => waiting.give(&self.tasks, index),
            ModelMessage::Beat { health, operator_seq, reading, base, known } => {
                self.on_beat(to, from, health, operator_seq);
                self.on_reading(to, from, reading, (base, known));
                self.reply_to_beat(to, from);
            }
            ModelMessage::Reply { told, time, base, trust } => self.on_reply(to, told, (time, trust), base),
            ModelMessage::AskPeer => self.on_ask_peer(to, from),
            ModelMessage::Peer(peer) => self.on_peer(to, from, peer),
        }
    }
}
