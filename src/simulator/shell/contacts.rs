//! Beats to the leader, its replies, and questions to the others where no leader is heard.

use std::rc::Rc;
use std::time::Duration;

use super::Here;
use crate::machine::alone::Peer;
use crate::machine::contacts::{BEAT_EVERY, Health, Told, Word};
use crate::machine::time::Timestamp;
use crate::simulator::mistake::Mistake;
use crate::simulator::network::Message;
use crate::simulator::tasks::{News, first};
use crate::simulator::world::World;

/// Tells the leader how this replica is, and asks the others while it hears none.
pub(super) async fn beat(here: Here) {
    let (world, tasks, signals) = (&here.world, &here.world.tasks, &here.process.signals);
    loop {
        let (health, wishes) = (here.health(), here.state().wished);
        let is_news = here.process.contacts.borrow_mut().heard(here.steady(), here.name(), health, wishes);
        if is_news {
            signals.contact.tell(tasks);
        }
        match here.standing().leader {
            Some(leader) if leader == here.me => here.set_the_time(),
            Some(leader) => {
                let ahead = here.process.time.borrow().follows().then(|| here.wall_is_ahead_by());
                let base = here.process.base.get();
                world.send(here.me, leader, Message::Beat { health, wishes, ahead, base });
            }
            None => {
                let members = world.nodes[here.me].kept.borrow().members.clone();
                for other in members.voters.iter().filter(|other| **other != here.me) {
                    world.send(here.me, *other, Message::AskPeer);
                }
            }
        }
        let leader = here.standing().leader;
        let changes = async {
            while here.standing().leader == leader && here.health().channel == health.channel {
                News::of([&signals.standing, &signals.polled]).come(tasks).await;
            }
        };
        let _ = first(here.sleep(BEAT_EVERY), changes).await;
    }
}

impl Here {
    /// Of the time that this replica carries on as the leader.
    pub(in crate::simulator) fn time_base(&self) -> i64 {
        self.process.time.borrow().base()
    }

    fn wall_is_ahead_by(&self) -> i64 {
        self.clocks().wall.0 - self.time().0
    }

    /// As the leader: what a majority of the voters agrees about is the time.
    fn set_the_time(&self) {
        let mut time = self.process.time.borrow_mut();
        time.lead();
        let clocks = self.clocks();
        let own = clocks.wall.0 - time.now(clocks).0;
        let voters = self.world.nodes[self.me].kept.borrow().members.voters.clone();
        let mut known = self.process.ahead.borrow_mut();
        let others = voters.iter().filter(|voter| **voter != self.me).filter_map(|voter| known.get(voter).copied());
        let ahead: Vec<i64> = std::iter::once(own).chain(others).collect();
        let ahead = if self.world.mistake == Mistake::OneClockRules { vec![own; voters.len()] } else { ahead };
        if time.agree(clocks, &ahead, voters.len()) {
            known.clear();
        }
    }
}

impl World {
    pub(in crate::simulator) fn on_beat(
        self: &Rc<Self>,
        vm: usize,
        from: usize,
        health: Health,
        wishes: u64,
        ahead: Option<i64>,
    ) {
        let Some(here) = self.here(vm).filter(|here| here.standing().leads()) else { return };
        here.process.time.borrow_mut().lead();
        here.process.ahead.borrow_mut().extend(ahead.map(|ahead| (from, ahead)));
        let from_name = &self.nodes[from].name;
        if here.process.contacts.borrow_mut().heard(here.steady(), from_name, health, wishes) {
            here.process.signals.contact.tell(&self.tasks);
        }
        let contacts = here.contacts(&here.members());
        let told = contacts.into_iter().map(|(name, contact)| {
            let health =
                Health { channel: contact.channel, document_age: contact.document_age, answers_in: contact.answers_in };
            let silent_for = if contact.reachable { Duration::ZERO } else { here.time().since(contact.since) };
            (name, Word { reachable: contact.reachable, silent_for, health, wishes: contact.wishes })
        });
        let base = here.time_base();
        let is_known = here.process.time.borrow().is_known();
        self.send(vm, from, Message::Reply { told: told.collect(), time: here.time(), base, is_known });
    }

    pub(in crate::simulator) fn on_reply(
        self: &Rc<Self>,
        vm: usize,
        told: Told,
        (time, is_known): (Timestamp, bool),
        base: i64,
    ) {
        let Some(here) = self.here(vm) else { return };
        here.process.base.set(base);
        if !here.standing().is_leader {
            here.process.time.borrow_mut().follow(time, here.steady(), is_known);
            here.process.contacts.borrow_mut().told(here.steady(), told);
        }
    }

    pub(in crate::simulator) fn on_ask_peer(self: &Rc<Self>, vm: usize, from: usize) {
        let Some(here) = self.here(vm) else { return };
        let standing = here.standing();
        let leader = standing.leader.filter(|_| standing.quorum);
        let leader = leader.map(|leader| self.nodes[leader].name.to_string());
        self.send(vm, from, Message::Peer(Peer { leader, channel: here.health().channel }));
    }

    pub(in crate::simulator) fn on_peer(self: &Rc<Self>, vm: usize, from: usize, peer: Peer) {
        let Some(here) = self.here(vm) else { return };
        here.process.contacts.borrow_mut().answered(here.steady(), &self.nodes[from].name, peer);
    }
}
