//! The state that all replicas agree on: the result of all committed entries.

mod replica;

pub use self::replica::Replica;
use crate::model::document::{Announcement, Document, Status};
use crate::model::event::Event;
use crate::model::id::{AttemptId, EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::notification::DeliveryRecord;
use crate::model::operator::{OperatorAction, OperatorRecord};
use crate::model::reconcile_state::{Leadership, ReconcileState};
use crate::model::slot::Slot;
use crate::model::time::Timestamp;
use crate::model::version;
use crate::model::workload::{Condition, Member, Role, Workload};
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// Limits on the number and the age of closed events in the state. These limits are constants: every replica applies
/// the same log, and replicas with different limits would have different histories. A longer history has to be
/// exported.
pub const HISTORY_LIMIT: usize = 1_000;

pub const HISTORY_AGE: Duration = Duration::from_hours(90 * 24);

/// Open events. An announcement above the limit is not opened until an event closes; `beyond_the_limit` reports the
/// excess.
pub const OPEN_LIMIT: usize = 256;

/// Above this number, an event without a VM of this cluster is not opened: the rest is reserved for events of this
/// cluster.
pub const OPEN_LIMIT_OF_OTHERS: usize = 192;

/// Workloads of one replica, configured workloads and session workloads together; a further workload is rejected.
pub const WORKLOAD_LIMIT: usize = 64;

/// Copies of the state share replicas and events until one copy changes them: the state is published after each batch
/// of entries of the log, and most of the state is unchanged then.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The meaning of entries; see `version`.
    pub version: u64,
    /// The time of the last entry.
    pub now: Timestamp,
    pub replicas: BTreeMap<VmName, Arc<Replica>>,
    pub open: BTreeMap<EventId, Arc<Event>>,
    /// Oldest first.
    pub history: VecDeque<Arc<Event>>,
    /// The number of attempts so far.
    pub attempts: u64,
    /// The latest leadership; `None` before the first.
    pub leadership: Option<Leadership>,
    /// One state for every replica that ever was a voter under a leader, or fell silent.
    pub reconcile_states: BTreeMap<VmName, ReconcileState>,
    /// The number of operator requests accepted so far.
    pub operator_seq: u64,
    /// The requests that concern no single event, oldest first.
    pub operator_records: Vec<OperatorRecord>,
    /// The recent deliveries to other systems.
    pub deliveries: BTreeMap<String, DeliveryRecord>,
    /// The members out of service because of events. A member without a slot is in service.
    pub slots: BTreeMap<Member, Slot>,
    /// The number of slots ever taken.
    pub stints: u64,
    /// The replicas that an operator removed, in the order of removal; see `exclusion`.
    pub excluded: Vec<VmName>,
}

/// Before the first entry.
impl Default for State {
    fn default() -> Self {
        Self {
            version: version::FIRST,
            now: Timestamp::default(),
            replicas: BTreeMap::new(),
            open: BTreeMap::new(),
            history: VecDeque::new(),
            attempts: 0,
            leadership: None,
            reconcile_states: BTreeMap::new(),
            operator_seq: 0,
            operator_records: Vec::new(),
            deliveries: BTreeMap::new(),
            slots: BTreeMap::new(),
            stints: 0,
            excluded: Vec::new(),
        }
    }
}

impl State {
    pub fn event(&self, id: &EventId) -> Option<&Event> {
        self.open_event(id).or_else(|| self.closed_events().rev().find(|event| event.announcement.id == *id))
    }

    pub fn open_event(&self, id: &EventId) -> Option<&Event> {
        self.open.get(id).map(|event| &**event)
    }

    pub fn open_events(&self) -> impl Iterator<Item = &Event> + Clone {
        self.open.values().map(|event| &**event)
    }

    /// Oldest first.
    pub fn closed_events(&self) -> impl DoubleEndedIterator<Item = &Event> + ExactSizeIterator + Clone {
        self.history.iter().map(|event| &**event)
    }

    /// The open events, then the closed events.
    pub fn events(&self) -> impl Iterator<Item = &Event> + Clone {
        self.open_events().chain(self.closed_events())
    }

    /// Operator requests about the event, and about all events while the event was open.
    pub fn records_about<'a>(
        &'a self,
        event: &'a Event,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a OperatorRecord> + use<'a> {
        let closed = event.entered_at(Stage::Closed).unwrap_or(now);
        let replaced = |pause: &OperatorRecord| {
            let later = |wish: &&OperatorRecord| wish.number > pause.number && wish.pauses_or_resumes();
            self.operator_records.iter().find(later).map(|wish| wish.at)
        };
        let ends = move |wish: &OperatorRecord| match wish.what {
            OperatorAction::Pause { until } => replaced(wish).map_or(until, |at| at.min(until)),
            OperatorAction::Hold { until, .. } => until,
            OperatorAction::Release
            | OperatorAction::Approve { .. }
            | OperatorAction::Resume
            | OperatorAction::Prepare { .. }
            | OperatorAction::Retry { .. }
            | OperatorAction::Restored(_)
            | OperatorAction::ClusterChange(_) => wish.at,
        };
        let is_of_its_time = move |wish: &&OperatorRecord| wish.at <= closed && ends(wish) >= event.first_seen();
        event.operator_records.iter().chain(self.operator_records.iter().filter(is_of_its_time))
    }

    pub fn workload(&self, member: &Member) -> Option<&Workload> {
        self.replicas.get(&member.vm)?.workload(&member.workload)
    }

    /// The restore hooks of the member are known: the member is registered, or was when a hook took service away.
    pub fn is_restorable(&self, member: &Member) -> bool {
        let replica = self.replicas.get(&member.vm);
        replica.is_some_and(|it| it.knows(&member.workload) || it.owed_workloads.contains_key(&member.workload))
    }

    /// Every effective workload of every VM.
    pub fn workloads(&self) -> impl Iterator<Item = (&VmName, &Workload)> {
        self.replicas.iter().flat_map(|(vm, replica)| replica.effective().map(move |workload| (vm, workload)))
    }

    /// `None` for a workload that is not registered.
    pub fn condition(&self, member: &Member) -> Option<Condition> {
        let replica = self.replicas.get(&member.vm)?;
        replica.workload(&member.workload).map(|workload| replica.condition(&workload.name))
    }

    pub fn role(&self, member: &Member) -> Role {
        self.replicas.get(&member.vm).map_or(Role::Unknown, |replica| replica.condition(&member.workload).role)
    }

    pub fn away_since(&self, member: &Member) -> Option<Timestamp> {
        self.replicas.get(&member.vm)?.disconnected.get(&member.workload).copied()
    }

    /// The session workload of the member is disconnected; the hooks cannot be run on the member's VM.
    pub fn is_absent(&self, member: &Member) -> bool {
        let replica = self.replicas.get(&member.vm);
        replica.is_some_and(|replica| replica.workload(&member.workload).is_some_and(|it| replica.is_absent(it)))
    }

    /// The furthest status in any current document.
    pub fn observed_status(&self, event: &EventId) -> Option<&Status> {
        self.replicas.values().filter_map(|replica| replica.lists_event(event)).max()
    }

    /// The event as all current documents together list it (`SPEC.md` 2, D1); `None` when no document lists the
    /// event.
    pub fn shown(&self, event: &EventId) -> Option<Announcement> {
        self.shown_with(event, None)
    }

    /// As `shown`, with `fresh` instead of the current document of the named replica.
    pub fn shown_with(&self, event: &EventId, fresh: Option<(&VmName, &Document)>) -> Option<Announcement> {
        let known = self
            .replicas
            .iter()
            .filter(|(name, replica)| replica.stale_since.is_none() && fresh.is_none_or(|(own, _)| own != *name));
        let documents = known.filter_map(|(_, replica)| replica.document.as_ref());
        let views = documents.chain(fresh.map(|(_, document)| document)).filter_map(|document| document.get(event));
        views.fold(None, |shown: Option<Announcement>, view| {
            Some(shown.map_or_else(|| view.clone(), |shown| self.fitted(shown.joined_with(view))))
        })
    }

    /// A current document lists the event.
    pub fn is_listed(&self, event: &EventId) -> bool {
        self.observed_status(event).is_some()
    }

    /// Every replica that listed the event and still counts reports the event as gone, and at least one such replica
    /// counts.
    pub fn is_event_gone(&self, event: &EventId, seen_by: &BTreeSet<VmName>) -> bool {
        let mut seers = seen_by
            .iter()
            .filter_map(|name| self.replicas.get(name))
            .filter(|replica| replica.stale_since.is_none())
            .peekable();
        seers.peek().is_some() && seers.all(|replica| replica.no_longer_lists(event))
    }

    pub(crate) fn next_attempt(&mut self) -> AttemptId {
        self.attempts += 1;
        AttemptId(self.attempts)
    }
}
