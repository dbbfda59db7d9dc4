//! Pending notifications, and deliveries of this replica. A few notifications are known to this replica alone; the
//! leader makes the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::receiver::Receiver;
use crate::replica::SharedParts;
use crate::replica::clock;
use crate::replica::cluster::ClusterHandle;
use crate::replica::input_source::InputSource;
use crate::replica::journal::ApprovalJournal;
use crate::replica::metrics::Metrics;
use crate::replica::view::View;
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::notification::{Delivery, Notification, NotificationKind, TOLD_WITHIN};
use allclear_core::model::time::Timestamp;
use allclear_core::notification::{BlockedSince, due};

/// A previous leader may still be sending, and records its deliveries within this time.
const LEFT_TO_THE_LAST: Duration = Duration::from_secs(2);
/// A receiver is told of the return of a quorum that was lost for less than this.
const LOSS_KEPT_FOR: Duration = Duration::from_hours(24);
/// The maximal number of notifications kept that only this replica knows.
const OWN_LIMIT: usize = 64;

pub(super) struct PendingNotifications {
    pub(super) cluster: Arc<ClusterHandle>,
    inputs: Arc<InputSource>,
    journal: Arc<ApprovalJournal>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) view: View,
    pub(super) page: Option<String>,
    kept: Mutex<PendingState>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct PendingState {
    /// Notifications that only this replica knows, each with its sentence.
    own: Vec<(Notification, String)>,
    /// Delivery marks by notification and receiver.
    told: BTreeMap<(String, String), DeliveryMark>,
}

struct DeliveryMark {
    at: Timestamp,
    /// The log has the delivery, or does not need the record.
    is_noted: bool,
    /// How long the mark may be needed.
    kept_for: Duration,
}

impl PendingNotifications {
    pub(super) fn new(shared: &SharedParts, view: View, page: Option<String>) -> Self {
        let SharedParts { inputs, journal, metrics, .. } = shared.clone();
        Self {
            cluster: inputs.cluster.clone(),
            inputs,
            journal,
            metrics,
            view,
            page,
            kept: Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Adds a notification that only this replica knows.
    pub(super) fn add(&self, notice: Notification, text: String) {
        let mut kept = self.kept();
        let excess = (kept.own.len() + 1).saturating_sub(OWN_LIMIT);
        kept.own.drain(..excess);
        kept.own.push((notice, text));
        drop(kept);
        self.changes.send_replace(());
    }

    /// Removes notifications of a condition that has ended, so that no further receiver gets them.
    pub(super) fn withdraw(&self, topic: NotificationKind) {
        self.kept().own.retain(|(notice, _)| notice.kind != topic);
    }

    pub(super) fn own_text(&self, notice: &Notification) -> Option<String> {
        self.kept().own.iter().find(|(own, _)| own.id == notice.id).map(|(_, text)| text.clone())
    }

    /// Notifications that this replica still has to send to a receiver, ordered by time.
    pub(super) fn pending(&self, receiver: &Receiver, waits: &mut BlockedSince) -> Vec<Notification> {
        let (state, input) = (self.cluster.state(), self.inputs.planning_input());
        let mut pending = self.alone(input.now);
        if self.leads_for_a_while() && self.cluster.reconciliation_known(&state) {
            if receiver.topics.contains(&NotificationKind::Blocked) {
                waits.update(&state, &input);
            }
            pending.extend(due(&state, &input, waits, receiver.blocked_after));
        } else {
            waits.forget();
        }
        let mut kept = self.kept();
        kept.told.retain(|_, mark| input.now.since(mark.at) < mark.kept_for);
        kept.own.retain(|(notice, _)| input.now.since(notice.at) < TOLD_WITHIN);
        pending.extend(kept.own.iter().map(|(notice, _)| notice.clone()));
        let mut seen = BTreeSet::new();
        let is_told = |id: &str| {
            state.is_delivered(id, &receiver.name) || kept.told.contains_key(&(id.into(), receiver.name.clone()))
        };
        pending.retain(|notice| {
            let is_meant = notice.is_of(&receiver.topics) && notice.closes().is_none_or(&is_told);
            is_meant && !is_told(&notice.id) && seen.insert(notice.id.clone())
        });
        pending.sort_unstable();
        pending
    }

    /// True once a new leader has had time to apply deliveries of the previous leader, which would be repeated
    /// otherwise.
    fn leads_for_a_while(&self) -> bool {
        let since = self.inputs.peers.leading_since();
        self.cluster.leads() && since.is_some_and(|since| clock::monotonic().since(since) >= LEFT_TO_THE_LAST)
    }

    /// Notifications of isolated approvals that this replica has yet to reconcile.
    fn alone(&self, now: Timestamp) -> Vec<Notification> {
        let is_over = |entry: &&JournalEntry| entry.approval.outcome.is_some() && entry.approval.may_have_been_posted();
        let notice = |JournalEntry { announcement, approval: takeover }: &JournalEntry| {
            Notification::alone(&announcement.id, &takeover.approver, takeover.at, takeover.at)
        };
        let entries = self.journal.entries();
        entries.iter().filter(is_over).map(notice).filter(|notice| now.since(notice.at) < TOLD_WITHIN).collect()
    }

    /// Marks a notification as delivered, or as rejected permanently.
    pub(super) fn told(&self, notice: &Notification, receiver: &Receiver) {
        // Only this mark tells at the return of the quorum who was told of the loss.
        let kept_for = if notice.kind == NotificationKind::QuorumLost { LOSS_KEPT_FOR } else { TOLD_WITHIN };
        let mark = DeliveryMark { at: notice.at, is_noted: !notice.is_recorded_in_log(), kept_for };
        self.kept().told.insert((notice.id.clone(), receiver.name.clone()), mark);
        self.changes.send_replace(());
    }

    /// Deliveries not yet in the log.
    pub(super) fn unnoted(&self, most: usize) -> Vec<Delivery> {
        let kept = self.kept();
        let unnoted = kept.told.iter().filter(|(_, mark)| !mark.is_noted).take(most);
        let told = |((notice, receiver), _): (&(String, String), &DeliveryMark)| Delivery {
            notice: notice.clone(),
            receiver: receiver.clone(),
        };
        unnoted.map(told).collect()
    }

    pub(super) fn noted(&self, told: Vec<Delivery>) {
        let mut kept = self.kept();
        for Delivery { notice, receiver } in told {
            if let Some(mark) = kept.told.get_mut(&(notice, receiver)) {
                mark.is_noted = true;
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, PendingState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
