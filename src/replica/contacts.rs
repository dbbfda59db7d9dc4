//! Who answers, and whose metadata channel works: kept by the leader from the beats it hears, told to everybody else
//! in its replies, and asked of each other where no leader is heard. Nothing here is in the log; `apply` checks whatever follows from it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::clock;
use super::differences::Differences;
use crate::machine::alone::Peer;
use crate::machine::id::VmName;
use crate::machine::situation::{Channel, Contact};
use crate::machine::time::Timestamp;

/// Every replica says this often that it is there.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);
/// From here on silence means that a replica is out of reach: six beats.
const SILENT_AFTER: Duration = Duration::from_secs(3);

/// How long an answer of a replica that was asked for its leader counts: four questions.
const ANSWER_COUNTS_FOR: Duration = Duration::from_secs(2);

/// The health of one metadata channel, as its replica tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Health {
    pub channel: Channel,
    /// Since the last validated document.
    pub document_age: Option<Duration>,
}

/// What the leader tells of each replica.
pub type Told = BTreeMap<VmName, Word>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// It answers the leader.
    pub reachable: bool,
    /// For how long it has not; nothing while it does.
    pub silent_for: Duration,
    pub health: Health,
    /// How many wishes of operators it knows.
    pub wishes: u64,
}

/// What one replica knows of all of them.
pub struct Contacts {
    pub differences: Differences,
    me: VmName,
    table: Mutex<Table>,
    changes: watch::Sender<()>,
}

struct Table {
    /// On the steady clock; `None` while another replica leads.
    leading_since: Option<Timestamp>,
    heard: BTreeMap<VmName, Heard>,
    /// The leader's last reply and when it came, on the steady clock.
    told: Option<(Timestamp, Told)>,
    /// What others answered last, and when, on the steady clock.
    answered: BTreeMap<VmName, (Timestamp, Peer)>,
}

struct Heard {
    health: Health,
    wishes: u64,
    /// On the steady clock.
    at: Timestamp,
    channel_since: Timestamp,
}

impl Contacts {
    pub fn new(me: VmName) -> Self {
        let table = Table { leading_since: None, heard: BTreeMap::new(), told: None, answered: BTreeMap::new() };
        Self { differences: Differences::default(), me, table: Mutex::new(table), changes: watch::channel(()).0 }
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// A replica, perhaps this one, says how it is, and how many wishes of operators it knows.
    pub fn heard(&self, replica: &VmName, health: Health, wishes: u64) {
        let now = clock::steady();
        let mut table = self.lock();
        let before = table.heard.get(replica);
        let was_silent = before.is_none_or(|before| now.since(before.at) >= SILENT_AFTER);
        let same = before.filter(|before| before.health.channel == health.channel);
        let channel_since = same.map_or(now, |before| before.channel_since);
        let is_news = was_silent || same.is_none();
        table.heard.insert(replica.clone(), Heard { health, wishes, at: now, channel_since });
        drop(table);
        if is_news {
            self.changes.send_replace(());
        }
    }

    /// The leader's reply.
    pub fn told(&self, contacts: Told) {
        self.lock().told = Some((clock::steady(), contacts));
    }

    /// Another replica was asked while this one heard no leader.
    pub fn answered(&self, replica: &VmName, peer: Peer) {
        self.lock().answered.insert(replica.clone(), (clock::steady(), peer));
    }

    /// The others that answered a moment ago. Nobody is asked while a leader is heard.
    pub fn peers(&self) -> BTreeMap<VmName, Peer> {
        let now = clock::steady();
        let table = self.lock();
        let fresh = table.answered.iter().filter(|(_, (at, _))| now.since(*at) < ANSWER_COUNTS_FOR);
        fresh.map(|(name, (_, peer))| (name.clone(), peer.clone())).collect()
    }

    /// From now on this replica leads, or no longer does. Who was silent before it led is given time to speak, and until
    /// then nobody knows whether its channel works: what it said is of an earlier leadership, unless it said so just now,
    /// and whoever led meanwhile may be dead. An election takes longer than a beat.
    pub fn leading(&self, leads: bool) {
        let now = clock::steady();
        let mut table = self.lock();
        if leads != table.leading_since.is_some() {
            table.leading_since = leads.then_some(now);
            table.heard.retain(|name, heard| *name == self.me || now.since(heard.at) < BEAT_EVERY);
        }
    }

    /// This replica leads, or one that leads takes its beats: a leader that too few hear takes none.
    pub fn is_led(&self) -> bool {
        let table = self.lock();
        let is_told = || table.told.as_ref().is_some_and(|(told_at, _)| is_fresh(clock::steady(), *told_at));
        table.leading_since.is_some() || is_told()
    }

    /// What is known of the members now.
    ///
    /// `at` tells the cluster's time of a moment on the steady clock.
    pub fn of(&self, members: &[VmName], at: impl Fn(Timestamp) -> Timestamp) -> BTreeMap<VmName, Contact> {
        let table = self.lock();
        members.iter().filter_map(|name| Some((name.clone(), self.contact(&table, name, &at)?))).collect()
    }

    /// Since when this replica leads, on the steady clock.
    pub fn leading_since(&self) -> Option<Timestamp> {
        self.lock().leading_since
    }

    fn contact(&self, table: &Table, name: &VmName, at: impl Fn(Timestamp) -> Timestamp) -> Option<Contact> {
        let now = clock::steady();
        if let Some(leading_since) = table.leading_since {
            let heard = table.heard.get(name);
            let last = heard.map_or(leading_since, |heard| heard.at.max(leading_since));
            let reachable = *name == self.me || now.since(last) < SILENT_AFTER;
            return Some(Contact {
                reachable,
                since: at(last),
                channel: heard.map_or(Channel::Unknown, |heard| heard.health.channel),
                channel_since: at(heard.map_or(leading_since, |heard| heard.channel_since.max(leading_since))),
                // It was so old when it was told, and it has aged since.
                document_age: heard.and_then(|heard| Some(heard.health.document_age? + now.since(heard.at))),
                wishes: heard.map_or(0, |heard| heard.wishes),
            });
        }
        let own = || {
            let heard = table.heard.get(name).filter(|_| *name == self.me)?;
            let word = Word { reachable: true, silent_for: Duration::ZERO, health: heard.health, wishes: heard.wishes };
            Some((now, word))
        };
        let told = || {
            let (told_at, told) = table.told.as_ref().filter(|(told_at, _)| is_fresh(now, *told_at))?;
            Some((*told_at, *told.get(name)?))
        };
        let (told_at, Word { reachable, silent_for, health, wishes }) = own().or_else(told)?;
        Some(Contact {
            reachable,
            since: at(if reachable { now } else { told_at.minus(silent_for) }),
            channel: health.channel,
            channel_since: at(now),
            document_age: health.document_age,
            wishes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the leader told counts so long.
fn is_fresh(now: Timestamp, told_at: Timestamp) -> bool {
    now.since(told_at) < SILENT_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: Health = Health { channel: Channel::Healthy, document_age: None };

    fn names() -> Vec<VmName> {
        ["db-0", "db-1"].map(VmName::new).into()
    }

    #[test]
    fn a_new_leader_gives_everybody_time_to_speak() {
        let contacts = Contacts::new(VmName::new("db-0"));
        contacts.leading(true);
        let known = contacts.of(&names(), |at| at);
        assert!(known[&VmName::new("db-1")].reachable);
        assert_eq!(known[&VmName::new("db-1")].channel, Channel::Unknown);
    }

    #[test]
    fn who_spoke_when_this_one_led_before_is_not_known_to_be_well() {
        let contacts = Contacts::new(VmName::new("db-0"));
        let (early, late) = (VmName::new("db-1"), VmName::new("db-0"));
        contacts.leading(true);
        for name in [&early, &late] {
            contacts.heard(name, HEALTHY, 7);
        }
        contacts.leading(false);
        let spoke = contacts.lock().heard.get_mut(&early).map(|heard| heard.at = heard.at.minus(BEAT_EVERY));
        assert!(spoke.is_some());
        contacts.leading(true);
        let known = contacts.of(&names(), |at| at);
        let channels = [&early, &late].map(|name| (known[name].channel, known[name].wishes));
        assert_eq!(channels, [(Channel::Unknown, 0), (Channel::Healthy, 7)]);
    }

    #[test]
    fn a_follower_knows_itself_and_what_it_is_told() {
        let contacts = Contacts::new(VmName::new("db-0"));
        contacts.heard(&VmName::new("db-0"), HEALTHY, 0);
        assert_eq!(contacts.of(&names(), |at| at).len(), 1);
        assert!(!contacts.is_led());
        let silent_for = Duration::from_secs(40);
        let word = Word { reachable: false, silent_for, health: HEALTHY, wishes: 7 };
        contacts.told(BTreeMap::from([(VmName::new("db-1"), word)]));
        let known = contacts.of(&names(), |at| at)[&VmName::new("db-1")];
        assert_eq!((known.reachable, known.wishes, contacts.is_led()), (false, 7, true));
        let silent = clock::steady().since(known.since);
        assert!(silent >= silent_for && silent < silent_for + Duration::from_secs(30), "{silent:?}");
    }

    #[test]
    fn an_answer_is_kept_with_what_was_said_last() {
        let contacts = Contacts::new(VmName::new("db-0"));
        assert!(contacts.peers().is_empty());
        let peer = |leader: Option<&str>| Peer { leader: leader.map(Into::into), channel: Channel::Healthy };
        contacts.answered(&VmName::new("db-1"), peer(Some("db-2")));
        contacts.answered(&VmName::new("db-1"), peer(None));
        assert_eq!(contacts.peers(), BTreeMap::from([(VmName::new("db-1"), peer(None))]));
    }

    #[test]
    fn only_news_wakes_the_leader() {
        let contacts = Contacts::new(VmName::new("db-0"));
        let mut changes = contacts.changes();
        contacts.heard(&VmName::new("db-1"), HEALTHY, 0);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        contacts.heard(&VmName::new("db-1"), HEALTHY, 0);
        assert!(!changes.has_changed().unwrap());
        contacts.heard(&VmName::new("db-1"), Health { channel: Channel::Stalled, document_age: None }, 0);
        assert!(changes.has_changed().unwrap());
    }
}
