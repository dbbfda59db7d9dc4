//! Who answers, and whose metadata channel works, by the rules of `replica::contacts`: beats to the leader, its
//! replies, and questions to the others where no leader is heard.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::Here;
use crate::machine::id::VmName;
use crate::machine::situation::{Channel, Contact};
use crate::machine::time::Timestamp;
use crate::simulator::network::Message;
use crate::simulator::tasks::first;
use crate::simulator::world::World;

const BEAT_EVERY: Duration = Duration::from_millis(500);
const SILENT_AFTER: Duration = Duration::from_secs(3);
const ANSWER_COUNTS_FOR: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::simulator) struct Health {
    pub(in crate::simulator) channel: Channel,
    pub(in crate::simulator) document_age: Option<Duration>,
}

/// What the leader tells of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::simulator) struct Told {
    is_reachable: bool,
    health: Health,
    wishes: u64,
}

/// What another one answered while this one heard no leader.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) leader: Option<usize>,
    pub(super) channel: Channel,
}

/// All times are of the steady clock.
#[derive(Default)]
pub(super) struct Contacts {
    leading_since: Option<Timestamp>,
    heard: BTreeMap<VmName, Heard>,
    told: Option<(Timestamp, BTreeMap<VmName, Told>)>,
    answered: BTreeMap<VmName, (Timestamp, Peer)>,
}

struct Heard {
    health: Health,
    wishes: u64,
    at: Timestamp,
    channel_since: Timestamp,
}

impl Contacts {
    /// True when it is news.
    fn heard(&mut self, now: Timestamp, replica: &VmName, health: Health, wishes: u64) -> bool {
        let before = self.heard.get(replica);
        let was_silent = before.is_none_or(|before| now.since(before.at) >= SILENT_AFTER);
        let same = before.filter(|before| before.health.channel == health.channel);
        let channel_since = same.map_or(now, |before| before.channel_since);
        let is_news = was_silent || same.is_none();
        self.heard.insert(replica.clone(), Heard { health, wishes, at: now, channel_since });
        is_news
    }

    pub(super) fn peers(&self, now: Timestamp) -> impl Iterator<Item = (&VmName, Peer)> {
        let fresh = self.answered.iter().filter(move |(_, (at, _))| now.since(*at) < ANSWER_COUNTS_FOR);
        fresh.map(|(name, (_, peer))| (name, *peer))
    }

    pub(super) fn leading(&mut self, now: Timestamp, me: &VmName, leads: bool) {
        if leads != self.leading_since.is_some() {
            self.leading_since = leads.then_some(now);
            self.heard.retain(|name, heard| name == me || now.since(heard.at) < BEAT_EVERY);
        }
    }

    pub(super) fn leading_since(&self) -> Option<Timestamp> {
        self.leading_since
    }

    pub(super) fn of(
        &self,
        now: Timestamp,
        me: &VmName,
        members: &[VmName],
        at: impl Fn(Timestamp) -> Timestamp,
    ) -> BTreeMap<VmName, Contact> {
        members.iter().filter_map(|name| Some((name.clone(), self.contact(now, me, name, &at)?))).collect()
    }

    fn contact(
        &self,
        now: Timestamp,
        me: &VmName,
        name: &VmName,
        at: impl Fn(Timestamp) -> Timestamp,
    ) -> Option<Contact> {
        if let Some(leading_since) = self.leading_since {
            let heard = self.heard.get(name);
            let last = heard.map_or(leading_since, |heard| heard.at.max(leading_since));
            return Some(Contact {
                reachable: name == me || now.since(last) < SILENT_AFTER,
                since: at(last),
                channel: heard.map_or(Channel::Unknown, |heard| heard.health.channel),
                channel_since: at(heard.map_or(leading_since, |heard| heard.channel_since.max(leading_since))),
                document_age: heard.and_then(|heard| Some(heard.health.document_age? + now.since(heard.at))),
                wishes: heard.map_or(0, |heard| heard.wishes),
            });
        }
        let own = || {
            let heard = self.heard.get(name).filter(|_| name == me)?;
            Some(Told { is_reachable: true, health: heard.health, wishes: heard.wishes })
        };
        let told = || {
            let (told_at, told) = self.told.as_ref()?;
            told.get(name).filter(|_| now.since(*told_at) < SILENT_AFTER).copied()
        };
        let Told { is_reachable, health, wishes } = own().or_else(told)?;
        let since = at(now);
        Some(Contact {
            reachable: is_reachable,
            since,
            channel: health.channel,
            channel_since: since,
            document_age: health.document_age,
            wishes,
        })
    }
}

/// Tells the leader how this replica is, and asks the others while it hears none.
pub(super) async fn beat(here: Here) {
    let (world, tasks) = (here.world.clone(), &here.world.tasks);
    loop {
        let version = here.process.standing.version();
        let polled = here.process.polled.version();
        let (health, wishes) = (here.health(), here.state().wished);
        let is_news = here.process.contacts.borrow_mut().heard(here.steady(), here.name(), health, wishes);
        if is_news {
            here.process.contact.tell(tasks);
        }
        match here.standing().leader {
            Some(leader) if leader == here.me => {}
            Some(leader) => world.send(here.me, leader, Message::Beat { health, wishes }),
            None => {
                let members = world.nodes[here.me].kept.borrow().members.clone();
                for other in members.voters.iter().filter(|other| **other != here.me) {
                    world.send(here.me, *other, Message::AskPeer);
                }
            }
        }
        let leader = here.standing().leader;
        let changes = async {
            here.process.standing.changed(tasks, version).await;
            if here.standing().leader == leader {
                here.process.polled.changed(tasks, polled).await;
                if here.health().channel == health.channel {
                    std::future::pending::<()>().await;
                }
            }
        };
        let _ = first(here.sleep(BEAT_EVERY), changes).await;
    }
}

impl World {
    pub(in crate::simulator) fn on_beat(self: &Rc<Self>, vm: usize, from: usize, health: Health, wishes: u64) {
        let Some(here) = self.here(vm).filter(|here| here.standing().leads()) else { return };
        here.process.time.borrow_mut().lead();
        let from_name = &self.nodes[from].name;
        if here.process.contacts.borrow_mut().heard(here.steady(), from_name, health, wishes) {
            here.process.contact.tell(&self.tasks);
        }
        let contacts = here.contacts(&here.members());
        let told = contacts.into_iter().map(|(name, contact)| {
            let health = Health { channel: contact.channel, document_age: contact.document_age };
            (name, Told { is_reachable: contact.reachable, health, wishes: contact.wishes })
        });
        self.send(vm, from, Message::Reply { told: told.collect(), time: here.time() });
    }

    pub(in crate::simulator) fn on_reply(self: &Rc<Self>, vm: usize, told: BTreeMap<VmName, Told>, time: Timestamp) {
        let Some(here) = self.here(vm) else { return };
        if !here.standing().is_leader {
            here.process.time.borrow_mut().follow(here.clocks(), time);
            here.process.contacts.borrow_mut().told = Some((here.steady(), told));
        }
    }

    pub(in crate::simulator) fn on_ask_peer(self: &Rc<Self>, vm: usize, from: usize) {
        let Some(here) = self.here(vm) else { return };
        let standing = here.standing();
        let leader = standing.leader.filter(|_| standing.quorum);
        self.send(vm, from, Message::Peer { leader, health: here.health() });
    }

    pub(in crate::simulator) fn on_peer(
        self: &Rc<Self>,
        vm: usize,
        from: usize,
        leader: Option<usize>,
        health: Health,
    ) {
        let Some(here) = self.here(vm) else { return };
        let peer = Peer { leader, channel: health.channel };
        let name = self.nodes[from].name.clone();
        here.process.contacts.borrow_mut().answered.insert(name, (here.steady(), peer));
    }
}
