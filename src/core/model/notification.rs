//! Notifications for other systems, and the record of their delivery.

use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::reconcile_state::Leadership;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// From the moment that a notice tells of.
pub const TOLD_WITHIN: Duration = Duration::from_hours(1);

/// In the order in which they are told of one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotificationKind {
    Announced,
    /// The event has waited for the same for longer than somebody wants to.
    Blocked,
    /// A replica acted for another: it leads instead of one that was silent, or approved alone.
    Takeover,
    AllClear,
    Started,
    Closed,
    /// Restoring a member fails, and nobody else of its group is stopped or approved meanwhile.
    RestoreFailed,
    ChannelStalled,
    QuorumLost,
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
});

/// Something that is worth telling, once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Notification {
    /// When it came about.
    pub at: Timestamp,
    pub kind: NotificationKind,
    pub subject: NotificationSubject,
    /// The same whoever tells it.
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
    /// An event that comes back under its id is another one, by when it was first seen.
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

    /// Once for each time that the member is taken.
    pub(crate) fn restore_failed(member: &Member, stint: u64, since: Timestamp) -> Self {
        let id = format!("{}/{}/{stint}", member.path(), NotificationKind::RestoreFailed);
        Self {
            at: since,
            kind: NotificationKind::RestoreFailed,
            subject: NotificationSubject::Member(member.clone()),
            id,
        }
    }

    /// A replica approved the event alone. Neither it nor the log need to know when the other first saw it.
    pub fn alone(event: &EventId, approver: &VmName, approved_at: Timestamp, at: Timestamp) -> Self {
        let id = format!("{event}/{}/{approver}/{}", NotificationKind::Takeover, approved_at.0);
        Self { at, kind: NotificationKind::Takeover, subject: NotificationSubject::Event(event.clone()), id }
    }

    /// A replica acts for its leader.
    pub fn acted(replica: &VmName, at: Timestamp) -> Self {
        let id = format!("{replica}/{}/{}", NotificationKind::Takeover, at.0);
        Self { at, kind: NotificationKind::Takeover, subject: NotificationSubject::Replica(replica.clone()), id }
    }

    /// The replicas that lost the same leadership say the same.
    pub fn quorum_lost(known: &Leadership, at: Timestamp) -> Self {
        let id = format!("{}/{}-{}", NotificationKind::QuorumLost, known.term, known.turn);
        Self { at, kind: NotificationKind::QuorumLost, subject: NotificationSubject::Cluster, id }
    }

    /// At most one an hour, and by when its last document came, which every leader knows.
    pub(crate) fn stalled(replica: &VmName, since: Timestamp) -> Self {
        let hours = since.0.div_euclid(i64::try_from(TOLD_WITHIN.as_millis()).unwrap_or(i64::MAX));
        let id = format!("{replica}/{}/{hours}", NotificationKind::ChannelStalled);
        Self {
            at: since,
            kind: NotificationKind::ChannelStalled,
            subject: NotificationSubject::Replica(replica.clone()),
            id,
        }
    }

    /// Everybody knows of it, so it is noted who was told. The rest is told by whoever knows.
    pub fn is_recorded_in_log(&self) -> bool {
        match (self.kind, &self.subject) {
            (NotificationKind::QuorumLost, _) | (NotificationKind::Takeover, NotificationSubject::Replica(_)) => false,
            (
                _,
                NotificationSubject::Event(_)
                | NotificationSubject::Member(_)
                | NotificationSubject::Replica(_)
                | NotificationSubject::Cluster,
            ) => true,
        }
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.at <= now && now.since(self.at) < TOLD_WITHIN
    }
}

/// A notice that a receiver has, or that is not told to it any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Delivery {
    pub notice: String,
    pub receiver: String,
}

/// What the log knows of one notice.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeliveryRecord {
    /// When a receiver was first noted to have it.
    pub at: Timestamp,
    pub receivers: BTreeSet<String>,
}
