//! `machine::contacts` by the steady clock of this machine, for all who share it.

use allclear_core::contacts;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::clock;
use super::differences::Differences;
use super::policies::Policies;
pub use allclear_core::contacts::{BEAT_EVERY, Health, Told, Word};
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::Peer;
use allclear_core::model::time::Timestamp;
use allclear_core::situation::Contact;

/// What one replica knows of all of them.
pub struct Contacts {
    me: VmName,
    version: u64,
    pub differences: Differences,
    pub policies: Policies,
    /// The highest cluster version that each replica's program knows.
    versions: Mutex<BTreeMap<VmName, u64>>,
    known: Mutex<contacts::Contacts>,
    changes: watch::Sender<()>,
}

impl Contacts {
    /// Of the replica `me`, whose program knows this cluster version.
    pub fn new(me: VmName, version: u64) -> Self {
        let versions = Mutex::new(BTreeMap::from([(me.clone(), version)]));
        let known = Mutex::new(contacts::Contacts::new(me.clone()));
        let (differences, policies) = (Differences::default(), Policies::default());
        Self { me, version, differences, policies, versions, known, changes: watch::channel(()).0 }
    }

    /// What this replica's program knows.
    pub const fn own_version(&self) -> u64 {
        self.version
    }

    /// As the leader: a replica tells what its program knows.
    pub fn knows(&self, replica: &VmName, version: u64) {
        self.versions_mut().insert(replica.clone(), version);
    }

    /// The leader's reply.
    pub fn told_versions(&self, versions: BTreeMap<VmName, u64>) {
        *self.versions_mut() = versions;
        self.knows(&self.me, self.version);
    }

    pub fn versions(&self) -> BTreeMap<VmName, u64> {
        self.versions_mut().clone()
    }

    fn versions_mut(&self) -> MutexGuard<'_, BTreeMap<VmName, u64>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// What is known of the others is of another use now: the time was set.
    pub fn tell_of_a_change(&self) {
        self.changes.send_replace(());
    }

    /// A replica, perhaps this one, says how it is, and how many wishes of operators it knows.
    pub fn heard(&self, replica: &VmName, health: Health, wishes: u64) {
        let is_news = self.known().heard(clock::steady(), replica, health, wishes);
        if is_news {
            self.changes.send_replace(());
        }
    }

    /// The leader's reply.
    pub fn told(&self, contacts: Told) {
        self.known().told(clock::steady(), contacts);
    }

    /// Another replica was asked while this one heard no leader.
    pub fn answered(&self, replica: &VmName, peer: Peer) {
        self.known().answered(clock::steady(), replica, peer);
    }

    /// The others that answered a moment ago. Nobody is asked while a leader is heard.
    pub fn peers(&self) -> BTreeMap<VmName, Peer> {
        self.known().peers(clock::steady())
    }

    /// From now on this replica leads, or no longer does.
    pub fn leading(&self, leads: bool) {
        self.known().leading(clock::steady(), leads);
    }

    /// This replica leads, or one that leads takes its beats.
    pub fn is_led(&self) -> bool {
        self.known().is_led(clock::steady())
    }

    /// What is known of the members now. `at` tells the cluster's time of a moment on the steady clock.
    pub fn of(&self, members: &[VmName], at: impl Fn(Timestamp) -> Timestamp) -> BTreeMap<VmName, Contact> {
        self.known().of(clock::steady(), members, at)
    }

    /// Since when this replica leads, on the steady clock.
    pub fn leading_since(&self) -> Option<Timestamp> {
        self.known().leading_since()
    }

    fn known(&self) -> MutexGuard<'_, contacts::Contacts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
