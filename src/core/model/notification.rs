//! Notifications for other systems, and the record of their delivery.

use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::reconcile_state::Leadership;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// The end of the id of the notification that closes another one, after the id of the closed notification. Both ends of a
/// wait have this id, so that a receiver is told of one end only.
pub const RESOLVED: &str = "/resolved";

/// A notification is delivered within this time of its timestamp, or not at all.
pub const TOLD_WITHIN: Duration = Duration::from_hours(1);

/// In the order of delivery for one timestamp.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotificationKind {
    Announced,
    /// The event has waited for the same person or repair for longer than `blocked_after`.
    Blocked,
    /// A replica acted for another replica: by leading instead of a silent leader, or by an isolated approval.
    Takeover,
    AllClear,
    Started,
    Closed,
    /// Restoring a member fails, and no other member of the group is stopped or approved meanwhile.
    RestoreFailed,
    ChannelStalled,
    QuorumLost,
    /// What an earlier notification reported is over.
    Resolved,
    /// The event went on without what an earlier `Blocked` reported.
    Unresolved,
}

string_enum!(NotificationKind {
    Announced => "announced",
    Blocked => "blocked",
    Takeover => "takeover",
    AllClear => "all_clear",
    Started => "started",
    Closed => "closed",
    RestoreFailed => "restore_failed",
    ChannelStalled => "channel_stalled",
    QuorumLost => "quorum_lost",
    Resolved => "resolved",
    Unresolved => "unresolved",
});

/// A change that other systems are notified of, once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Notification {
    /// When the change happened.
    pub at: Timestamp,
    pub kind: NotificationKind,
    pub subject: NotificationSubject,
    /// The id is equal on every replica that sends the notification.
    pub id: String,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotificationSubject {
    Event(EventId),
    Member(Member),
    Replica(VmName),
    Cluster,
}

impl Notification {
    /// The id contains the time of the first sight: an event that comes back under the same id is a new event.
    pub(crate) fn of(event: &Event, topic: NotificationKind, at: Timestamp) -> Self {
        let (id, Timestamp(first_seen)) = (&event.announcement.id, event.first_seen());
        Self {
            at,
            kind: topic,
            subject: NotificationSubject::Event(id.clone()),
            id: format!("{id}@{first_seen}/{topic}"),
        }
    }

    /// The event has waited for `what` for too long.
    pub(crate) fn blocked(event: &Event, what: &str, at: Timestamp) -> Self {
        let notice = Self::of(event, NotificationKind::Blocked, at);
        Self { id: format!("{}/{what}", notice.id), ..notice }
    }

    /// What this notification reported is over.
    #[must_use]
    pub fn resolved(&self, at: Timestamp) -> Self {
        self.closed_as(NotificationKind::Resolved, at)
    }

    /// The event went on without what this notification reported.
    #[must_use]
    pub(crate) fn unresolved(&self, at: Timestamp) -> Self {
        self.closed_as(NotificationKind::Unresolved, at)
    }

    fn closed_as(&self, kind: NotificationKind, at: Timestamp) -> Self {
        Self { at, kind, subject: self.subject.clone(), id: format!("{}{RESOLVED}", self.id) }
    }

    /// Whether a notification with this id reports something that may end, and so may be resolved.
    pub(crate) fn has_an_end(id: &str) -> bool {
        let kinds = [NotificationKind::Blocked, NotificationKind::RestoreFailed, NotificationKind::ChannelStalled];
        !id.ends_with(RESOLVED) && kinds.iter().any(|kind| id.contains(&format!("/{kind}/")))
    }

    /// The id of the notification that this one closes, resolved or not; `None` for other notifications.
    pub fn closes(&self) -> Option<&str> {
        let is_end = matches!(self.kind, NotificationKind::Resolved | NotificationKind::Unresolved);
        self.id.strip_suffix(RESOLVED).filter(|_| is_end)
    }

    /// Whether a receiver of these topics gets this notification. Whoever wants to know of a good end has to know of the
    /// other end.
    pub fn is_of(&self, topics: &BTreeSet<NotificationKind>) -> bool {
        let is_other_end = self.kind == NotificationKind::Unresolved && topics.contains(&NotificationKind::Resolved);
        is_other_end || topics.contains(&self.kind)
    }

    /// One notification for each stint of the member.
    pub(crate) fn restore_failed(member: &Member, stint: u64, since: Timestamp) -> Self {
        let id = format!("{}/{}/{stint}", member.path(), NotificationKind::RestoreFailed);
        Self {
            at: since,
            kind: NotificationKind::RestoreFailed,
            subject: NotificationSubject::Member(member.clone()),
            id,
        }
    }

    /// A replica approved the event alone. The id needs no time of first sight, neither the replica's nor the log's.
    pub fn alone(event: &EventId, approver: &VmName, approved_at: Timestamp, at: Timestamp) -> Self {
        let id = format!("{event}/{}/{approver}/{}", NotificationKind::Takeover, approved_at.0);
        Self { at, kind: NotificationKind::Takeover, subject: NotificationSubject::Event(event.clone()), id }
    }

    /// A replica acts for the leader.
    pub fn acted(replica: &VmName, at: Timestamp) -> Self {
        let id = format!("{replica}/{}/{}", NotificationKind::Takeover, at.0);
        Self { at, kind: NotificationKind::Takeover, subject: NotificationSubject::Replica(replica.clone()), id }
    }

    /// All replicas that lost one leadership create one id.
    pub fn quorum_lost(known: &Leadership, at: Timestamp) -> Self {
        let id = format!("{}/{}-{}", NotificationKind::QuorumLost, known.term, known.turn);
        Self { at, kind: NotificationKind::QuorumLost, subject: NotificationSubject::Cluster, id }
    }

    /// At most one notification per hour. The id counts hours by the time of the last document, which every leader
    /// knows.
    pub(crate) fn stalled(replica: &VmName, since: Timestamp) -> Self {
        let hours = since.0.div_euclid(i64::try_from(TOLD_WITHIN.as_millis()).unwrap_or(i64::MAX));
        Self::stalled_as(replica, &format!("{hours}"), since)
    }

    /// `hour` is the end of the id.
    pub(crate) fn stalled_as(replica: &VmName, hour: &str, at: Timestamp) -> Self {
        let id = format!("{replica}/{}/{hour}", NotificationKind::ChannelStalled);
        Self { at, kind: NotificationKind::ChannelStalled, subject: NotificationSubject::Replica(replica.clone()), id }
    }

    /// Every replica knows the subject, so the log records the delivery. Other notifications are sent by each replica
    /// that knows the subject.
    pub fn is_recorded_in_log(&self) -> bool {
        match (self.kind, &self.subject) {
            (NotificationKind::QuorumLost, _)
            | (NotificationKind::Takeover, NotificationSubject::Replica(_))
            | (_, NotificationSubject::Cluster) => false,
            (_, NotificationSubject::Event(_) | NotificationSubject::Member(_) | NotificationSubject::Replica(_)) => {
                true
            }
        }
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.at <= now && now.since(self.at) < TOLD_WITHIN
    }
}

/// A notification that a receiver has, or that is no longer sent to the receiver.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Delivery {
    pub notice: String,
    pub receiver: String,
}

/// The log's record of one notification.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeliveryRecord {
    /// When the first delivery was recorded.
    pub at: Timestamp,
    pub receivers: BTreeSet<String>,
}

impl State {
    /// Whether any receiver was told that what this notification reported is over.
    pub(crate) fn is_resolved(&self, notice: &str) -> bool {
        self.deliveries.contains_key(&format!("{notice}{RESOLVED}"))
    }

    pub fn is_delivered(&self, notice: &str, receiver: &str) -> bool {
        self.deliveries.get(notice).is_some_and(|noted| noted.receivers.contains(receiver))
    }
}
