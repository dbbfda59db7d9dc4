//! The peer table of `core::peer_table` by this machine's monotonic clock, shared by several tasks.

use allclear_core::peer_table;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::clock;
use super::clock_skew::ClockSkew;
use super::policy_fingerprints::PolicyFingerprints;
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::PeerAnswer;
use allclear_core::model::time::Timestamp;
pub use allclear_core::peer_table::{BEAT_EVERY, ImdsReport, LeaderView, ViewedPeer};
use allclear_core::planning_input::PeerHealth;

/// The knowledge of a replica about all replicas.
pub struct PeerTracker {
    me: VmName,
    version: u64,
    pub differences: ClockSkew,
    pub policies: PolicyFingerprints,
    /// The highest cluster version known to each replica's program.
    versions: Mutex<BTreeMap<VmName, u64>>,
    known: Mutex<peer_table::PeerTable>,
    changes: watch::Sender<()>,
}

impl PeerTracker {
    /// The tracker of the replica `me`, whose program knows this cluster version.
    pub fn new(me: VmName, version: u64) -> Self {
        let versions = Mutex::new(BTreeMap::from([(me.clone(), version)]));
        let known = Mutex::new(peer_table::PeerTable::new(me.clone()));
        let (differences, policies) = (ClockSkew::default(), PolicyFingerprints::default());
        Self { me, version, differences, policies, versions, known, changes: watch::channel(()).0 }
    }

    /// The cluster version known to this replica's program.
    pub const fn own_version(&self) -> u64 {
        self.version
    }

    /// Records, as the leader, the cluster version known to a replica's program.
    pub fn knows(&self, replica: &VmName, version: u64) {
        self.versions_mut().insert(replica.clone(), version);
    }

    /// Records the versions of the leader's reply.
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

    /// Notifies subscribers after the time was set, which changes the use of the known facts about other replicas.
    pub fn notify_change(&self) {
        self.changes.send_replace(());
    }

    /// Records the health of a replica, perhaps this replica, and the number of operators' requests known to the
    /// replica.
    pub fn record_report(&self, replica: &VmName, health: ImdsReport, operator_seq: u64) {
        let is_news = self.known().record_report(clock::monotonic(), replica, health, operator_seq);
        if is_news {
            self.changes.send_replace(());
        }
    }

    /// Records the leader's reply.
    pub fn record_leader_view(&self, contacts: LeaderView) {
        self.known().record_leader_view(clock::monotonic(), contacts);
    }

    /// Records the answer of another replica, asked while this replica heard no leader.
    pub fn record_answer(&self, replica: &VmName, peer: PeerAnswer) {
        self.known().record_answer(clock::monotonic(), replica, peer);
    }

    /// The other replicas with a recent answer. No replica is asked while a leader is heard.
    pub fn recent_answers(&self) -> BTreeMap<VmName, PeerAnswer> {
        self.known().recent_answers(clock::monotonic())
    }

    /// Records whether this replica leads from now on.
    pub fn leading(&self, leads: bool) {
        self.known().leading(clock::monotonic(), leads);
    }

    /// This replica leads, or a leader accepts this replica's status reports.
    pub fn is_led(&self) -> bool {
        self.known().is_led(clock::monotonic())
    }

    /// The present health of the members. `at` converts a monotonic timestamp to the cluster's time.
    pub fn of(&self, members: &[VmName], at: impl Fn(Timestamp) -> Timestamp) -> BTreeMap<VmName, PeerHealth> {
        self.known().health_of_members(clock::monotonic(), members, at)
    }

    /// The beginning of this replica's leadership, on the monotonic clock.
    pub fn leading_since(&self) -> Option<Timestamp> {
        self.known().leading_since()
    }

    fn known(&self) -> MutexGuard<'_, peer_table::PeerTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
