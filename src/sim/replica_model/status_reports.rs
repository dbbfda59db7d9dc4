//! Status reports to the leader, its replies, and requests to the other replicas without a leader.

use std::rc::Rc;
use std::time::Duration;

use super::ModelContext;
use crate::network::ModelMessage;
use crate::tasks::{SignalChanges, first};
use crate::world::World;
use allclear_core::cluster_time::{ClockReading, Trust};
use allclear_core::model::isolation::PeerAnswer;
use allclear_core::model::time::Timestamp;
use allclear_core::peer_table::{BEAT_EVERY, ImdsReport, LeaderView, ViewedPeer};

/// While the cluster's time is unknown.
const BEAT_SOON: Duration = Duration::from_millis(100);

/// Reports to the leader how this replica is, and asks the other replicas while there is no leader.
pub(super) async fn beat(here: ModelContext) {
    let (world, tasks, signals) = (&here.world, &here.world.tasks, &here.process.signals);
    loop {
        let (health, operator_seq) = (here.health(), here.state().operator_seq);
        let is_news =
            here.process.contacts.borrow_mut().record_report(here.steady(), here.name(), health, operator_seq);
        if is_news {
            signals.contact.tell(tasks);
        }
        match here.status().leader {
            Some(leader) if leader == here.me => here.set_the_time(),
            Some(leader) => {
                let (reading, base) = (here.reading(), here.process.base.get());
                let known = (here.trust() == Trust::Known).then(|| here.time());
                world.send(here.me, leader, ModelMessage::Beat { health, operator_seq, reading, base, known });
            }
            None => {
                let members = world.nodes[here.me].kept.borrow().members.clone();
                for other in members.voters.iter().filter(|other| **other != here.me) {
                    world.send(here.me, *other, ModelMessage::AskPeer);
                }
            }
        }
        let leader = here.status().leader;
        let changes = async {
            while here.status().leader == leader && here.health().health == health.health {
                SignalChanges::of([&signals.status, &signals.polled]).come(tasks).await;
            }
        };
        // Nothing is stamped before the leader knows the time.
        let every = if here.trust() == Trust::Unknown { BEAT_SOON } else { BEAT_EVERY };
        let _ = first(here.sleep(every), changes).await;
    }
}

impl ModelContext {
    /// The base of the time that this replica keeps as the leader.
    pub(crate) fn time_base(&self) -> i64 {
        self.process.time.borrow().base()
    }

    fn reading(&self) -> ClockReading {
        let time = self.time();
        self.process.sight.borrow().reading(self.clocks().wall.0 - time.0, time, self.steady())
    }

    /// As the leader: sets the time from the voters' clock readings, if sufficient.
    fn set_the_time(&self) {
        self.process.time.borrow_mut().lead();
        let voters = self.world.nodes[self.me].kept.borrow().members.voters.clone();
        let own = self.reading();
        let mut known = self.process.readings.borrow_mut();
        let others = voters.iter().filter(|voter| **voter != self.me).filter_map(|voter| known.get(voter).copied());
        let mut readings: Vec<ClockReading> = std::iter::once(own).chain(others).collect();
        if makes!(self.world.mutation, OneClockRules) {
            readings = vec![ClockReading { platform: None, is_asking: false, ..own }; voters.len()];
        }
        if makes!(self.world.mutation, PlatformUnheard) {
            for reading in &mut readings {
                reading.platform = None;
            }
        }
        if self.process.time.borrow_mut().agree(self.clocks(), &readings, voters.len()) {
            known.clear();
            self.process.signals.contact.tell(&self.world.tasks);
        }
    }
}

impl World {
    pub(crate) fn on_beat(self: &Rc<Self>, vm: usize, from: usize, health: ImdsReport, operator_seq: u64) {
        let Some(here) = self.here(vm).filter(|here| here.status().leads()) else { return };
        here.process.time.borrow_mut().lead();
        let from_name = &self.nodes[from].name;
        if here.process.contacts.borrow_mut().record_report(here.steady(), from_name, health, operator_seq) {
            here.process.signals.contact.tell(&self.tasks);
        }
    }

    /// Receives the clock reading of a replica.
    pub(crate) fn on_reading(
        self: &Rc<Self>,
        vm: usize,
        from: usize,
        reading: ClockReading,
        (base, known): (Option<i64>, Option<Timestamp>),
    ) {
        let Some(here) = self.here(vm).filter(|here| here.status().leads()) else { return };
        let is_of_this_time = base == Some(here.time_base());
        if known.is_some_and(|time| here.process.time.borrow_mut().adopt(here.clocks(), time)) {
            here.process.readings.borrow_mut().clear();
            here.process.signals.contact.tell(&self.tasks);
        }
        {
            let mut readings = here.process.readings.borrow_mut();
            let told = readings.entry(from).or_default();
            *told = if is_of_this_time { reading } else { ClockReading { is_asking: reading.is_asking, ..*told } };
        }
        if here.trust() == Trust::Unknown {
            here.set_the_time();
        }
    }

    pub(crate) fn reply_to_beat(self: &Rc<Self>, vm: usize, from: usize) {
        let Some(here) = self.here(vm).filter(|here| here.status().leads()) else { return };
        let contacts = here.contacts(&here.members());
        let told = contacts.into_iter().map(|(name, contact)| {
            let health = ImdsReport {
                health: contact.imds,
                document_age: contact.document_age,
                answers_in: contact.answers_in,
                can_acknowledge: contact.can_acknowledge,
            };
            let silent_for = if contact.reachable { Duration::ZERO } else { here.time().since(contact.since) };
            (name, ViewedPeer { reachable: contact.reachable, silent_for, health, operator_seq: contact.operator_seq })
        });
        let base = here.time_base();
        let trust = here.trust();
        self.send(vm, from, ModelMessage::Reply { told: told.collect(), time: here.time(), base, trust });
    }

    pub(crate) fn on_reply(self: &Rc<Self>, vm: usize, told: LeaderView, (time, trust): (Timestamp, Trust), base: i64) {
        let Some(here) = self.here(vm) else { return };
        if !here.status().is_leader {
            let is_followed = here.process.time.borrow_mut().follow(time, here.steady(), trust);
            here.process.base.set(is_followed.then_some(base));
            here.process.contacts.borrow_mut().record_leader_view(here.steady(), told);
        }
    }

    pub(crate) fn on_ask_peer(self: &Rc<Self>, vm: usize, from: usize) {
        let Some(here) = self.here(vm) else { return };
        let status = here.status();
        let leader = status.leader.filter(|_| status.quorum);
        let leader = leader.map(|leader| self.nodes[leader].name.to_string());
        self.send(vm, from, ModelMessage::Peer(PeerAnswer { leader, channel: here.health().health }));
    }

    pub(crate) fn on_peer(self: &Rc<Self>, vm: usize, from: usize, peer: PeerAnswer) {
        let Some(here) = self.here(vm) else { return };
        here.process.contacts.borrow_mut().record_answer(here.steady(), &self.nodes[from].name, peer);
    }
}
