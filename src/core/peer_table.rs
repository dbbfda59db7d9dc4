//! The health of the other replicas. The leader keeps the table from status reports, and sends its view to all replicas
//! in its replies. A replica without a leader asks the other voters. The table is not in the log, and `apply` checks
//! every command that follows from it. All timestamps are of the monotonic clock of the replica that keeps the table.

use crate::model::id::VmName;
use crate::model::isolation::{ImdsHealth, PeerAnswer};
use crate::model::time::Timestamp;
use crate::planning_input::PeerHealth;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// The interval of status reports of every replica.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);

/// A replica that is silent for this long is unreachable: six status reports.
const SILENT_AFTER: Duration = Duration::from_secs(3);

/// How long an answer to the question for the leader counts: four questions.
const ANSWER_COUNTS_FOR: Duration = Duration::from_secs(2);

/// The health of one metadata channel, as reported by its replica.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImdsReport {
    pub health: ImdsHealth,
    /// Time since the last validated document.
    pub document_age: Option<Duration>,
    /// How long the endpoint took for the last validated document.
    pub answers_in: Duration,
    /// Whether the replica may approve through the control plane.
    pub can_acknowledge: bool,
}

/// The leader's view of each replica, sent to all replicas.
pub type LeaderView = BTreeMap<VmName, ViewedPeer>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViewedPeer {
    /// The replica answers the leader.
    pub reachable: bool,
    /// For how long the replica has not answered; zero while reachable.
    pub silent_for: Duration,
    pub health: ImdsReport,
    /// The number of operator requests that the replica knows.
    pub operator_seq: u64,
}

/// The knowledge of the replica `me` about all replicas.
#[derive(Debug)]
pub struct PeerTable {
    me: VmName,
    /// `None` while another replica leads.
    leading_since: Option<Timestamp>,
    reports: BTreeMap<VmName, ReceivedReport>,
    /// The leader's last reply and the time of arrival.
    leader_view: Option<(Timestamp, LeaderView)>,
    /// The last answers of other replicas, and the times of arrival.
    answered: BTreeMap<VmName, (Timestamp, PeerAnswer)>,
}

#[derive(Debug)]
struct ReceivedReport {
    health: ImdsReport,
    operator_seq: u64,
    at: Timestamp,
    imds_since: Timestamp,
}

impl PeerTable {
    pub const fn new(me: VmName) -> Self {
        Self { me, leading_since: None, reports: BTreeMap::new(), leader_view: None, answered: BTreeMap::new() }
    }

    /// Records the health of a replica, perhaps this replica, and the number of operator requests known there. True for
    /// a change.
    pub fn record_report(&mut self, now: Timestamp, replica: &VmName, health: ImdsReport, operator_seq: u64) -> bool {
        let before = self.reports.get(replica);
        let was_silent = before.is_none_or(|before| now.since(before.at) >= SILENT_AFTER);
        let same = before.filter(|before| before.health.health == health.health);
        let channel_since = same.map_or(now, |before| before.imds_since);
        let is_news = was_silent || same.is_none();
        self.reports
            .insert(replica.clone(), ReceivedReport { health, operator_seq, at: now, imds_since: channel_since });
        is_news
    }

    /// Records the leader's reply.
    pub fn record_leader_view(&mut self, now: Timestamp, contacts: LeaderView) {
        self.leader_view = Some((now, contacts));
    }

    /// Records the answer of another replica to this replica without a leader.
    pub fn record_answer(&mut self, now: Timestamp, replica: &VmName, peer: PeerAnswer) {
        self.answered.insert(replica.clone(), (now, peer));
    }

    /// The other replicas with a recent answer. No replica is asked while this replica has a leader.
    pub fn recent_answers(&self, now: Timestamp) -> BTreeMap<VmName, PeerAnswer> {
        let fresh = self.answered.iter().filter(|(_, (at, _))| now.since(*at) < ANSWER_COUNTS_FOR);
        fresh.map(|(name, (_, peer))| (name.clone(), peer.clone())).collect()
    }

    /// From now on this replica leads, or no longer does. A replica that was silent before gets time to report, and
    /// until then the health of its channel is unknown: an old report is of an earlier leadership, unless it just
    /// arrived, and the leader of the time between may be dead. An election takes longer than `BEAT_EVERY`.
    pub fn leading(&mut self, now: Timestamp, leads: bool) {
        if leads != self.leading_since.is_some() {
            self.leading_since = leads.then_some(now);
            self.reports.retain(|name, heard| *name == self.me || now.since(heard.at) < BEAT_EVERY);
        }
    }

    /// This replica leads, or a leader accepts its status reports: a leader without enough followers accepts none.
    pub fn is_led(&self, now: Timestamp) -> bool {
        self.leading_since.is_some() || self.current_leader_view(now).is_some()
    }

    /// Time since which this replica leads.
    pub const fn leading_since(&self) -> Option<Timestamp> {
        self.leading_since
    }

    /// The current health of the members.
    ///
    /// `at` converts a timestamp of the monotonic clock to cluster time.
    pub fn health_of_members(
        &self,
        now: Timestamp,
        members: &[VmName],
        at: impl Fn(Timestamp) -> Timestamp,
    ) -> BTreeMap<VmName, PeerHealth> {
        members.iter().filter_map(|name| Some((name.clone(), self.health_of(now, name, &at)?))).collect()
    }

    fn health_of(&self, now: Timestamp, name: &VmName, at: impl Fn(Timestamp) -> Timestamp) -> Option<PeerHealth> {
        if let Some(leading_since) = self.leading_since {
            let heard = self.reports.get(name);
            let last = heard.map_or(leading_since, |heard| heard.at.max(leading_since));
            return Some(PeerHealth {
                reachable: *name == self.me || now.since(last) < SILENT_AFTER,
                since: at(last),
                imds: heard.map_or(ImdsHealth::Unknown, |heard| heard.health.health),
                imds_since: at(heard.map_or(leading_since, |heard| heard.imds_since.max(leading_since))),
                // The document had this age in the report, and has aged since.
                document_age: heard.and_then(|heard| Some(heard.health.document_age? + now.since(heard.at))),
                answers_in: heard.map_or(Duration::ZERO, |heard| heard.health.answers_in),
                operator_seq: heard.map_or(0, |heard| heard.operator_seq),
                can_acknowledge: heard.is_some_and(|heard| heard.health.can_acknowledge),
            });
        }
        let own = || {
            let heard = self.reports.get(name).filter(|_| *name == self.me)?;
            let word = ViewedPeer {
                reachable: true,
                silent_for: Duration::ZERO,
                health: heard.health,
                operator_seq: heard.operator_seq,
            };
            Some((now, word))
        };
        let told = || {
            let (told_at, told) = self.current_leader_view(now)?;
            Some((*told_at, *told.get(name)?))
        };
        let (told_at, ViewedPeer { reachable, silent_for, health, operator_seq }) = own().or_else(told)?;
        Some(PeerHealth {
            reachable,
            since: at(if reachable { now } else { told_at.minus(silent_for) }),
            imds: health.health,
            imds_since: at(now),
            document_age: health.document_age,
            answers_in: health.answers_in,
            operator_seq,
            can_acknowledge: health.can_acknowledge,
        })
    }

    /// The last reply of the leader, while valid.
    fn current_leader_view(&self, now: Timestamp) -> Option<&(Timestamp, LeaderView)> {
        self.leader_view.as_ref().filter(|(told_at, _)| now.since(*told_at) < SILENT_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: ImdsReport = ImdsReport {
        health: ImdsHealth::Healthy,
        document_age: None,
        answers_in: Duration::ZERO,
        can_acknowledge: false,
    };
    const BEGIN: Timestamp = Timestamp(1_000_000);

    fn names() -> [VmName; 2] {
        ["db-0", "db-1"].map(VmName::new)
    }

    fn contacts() -> PeerTable {
        PeerTable::new(VmName::new("db-0"))
    }

    #[test]
    fn a_new_leader_gives_everybody_time_to_speak() {
        let mut contacts = contacts();
        contacts.leading(BEGIN, true);
        let known = contacts.health_of_members(BEGIN, &names(), |at| at);
        assert!(known[&VmName::new("db-1")].reachable);
        assert_eq!(known[&VmName::new("db-1")].imds, ImdsHealth::Unknown);
    }

    #[test]
    fn who_spoke_when_this_one_led_before_is_not_known_to_be_well() {
        let mut contacts = contacts();
        let [own, other] = names();
        contacts.leading(BEGIN, true);
        for name in [&own, &other] {
            contacts.record_report(BEGIN, name, HEALTHY, 7);
        }
        let later = BEGIN.plus(BEAT_EVERY);
        contacts.leading(later, false);
        contacts.leading(later, true);
        let known = contacts.health_of_members(later, &names(), |at| at);
        let channels = [&other, &own].map(|name| (known[name].imds, known[name].operator_seq));
        assert_eq!(channels, [(ImdsHealth::Unknown, 0), (ImdsHealth::Healthy, 7)]);
    }

    #[test]
    fn a_follower_knows_itself_and_what_it_is_told() {
        let mut contacts = contacts();
        contacts.record_report(BEGIN, &VmName::new("db-0"), HEALTHY, 0);
        assert_eq!(contacts.health_of_members(BEGIN, &names(), |at| at).len(), 1);
        assert!(!contacts.is_led(BEGIN));
        let silent_for = Duration::from_secs(40);
        let word = ViewedPeer { reachable: false, silent_for, health: HEALTHY, operator_seq: 7 };
        contacts.record_leader_view(BEGIN, BTreeMap::from([(VmName::new("db-1"), word)]));
        let known = contacts.health_of_members(BEGIN.plus(BEAT_EVERY), &names(), |at| at)[&VmName::new("db-1")];
        assert_eq!((known.reachable, known.operator_seq, contacts.is_led(BEGIN)), (false, 7, true));
        assert_eq!(known.since, BEGIN.minus(silent_for));
        assert!(!contacts.is_led(BEGIN.plus(SILENT_AFTER)));
    }

    #[test]
    fn an_answer_is_kept_with_what_was_said_last() {
        let mut contacts = contacts();
        assert!(contacts.recent_answers(BEGIN).is_empty());
        let peer = |leader: Option<&str>| PeerAnswer { leader: leader.map(Into::into), channel: ImdsHealth::Healthy };
        contacts.record_answer(BEGIN, &VmName::new("db-1"), peer(Some("db-2")));
        contacts.record_answer(BEGIN, &VmName::new("db-1"), peer(None));
        assert_eq!(contacts.recent_answers(BEGIN), BTreeMap::from([(VmName::new("db-1"), peer(None))]));
        assert!(contacts.recent_answers(BEGIN.plus(ANSWER_COUNTS_FOR)).is_empty());
    }

    #[test]
    fn only_what_changes_is_news() {
        let (mut contacts, db) = (contacts(), VmName::new("db-1"));
        assert!(contacts.record_report(BEGIN, &db, HEALTHY, 0));
        assert!(!contacts.record_report(BEGIN, &db, HEALTHY, 0));
        assert!(contacts.record_report(
            BEGIN,
            &db,
            ImdsReport {
                health: ImdsHealth::Stalled,
                document_age: None,
                answers_in: Duration::ZERO,
                can_acknowledge: false
            },
            0
        ));
    }
}
