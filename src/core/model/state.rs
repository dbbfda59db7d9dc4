//! The state that all replicas agree on: the result of all committed entries.

use crate::model::document::{Announcement, Document, Status};
use crate::model::event::Event;
use crate::model::id::{AttemptId, EventId, GroupName, VmName, WorkloadName};
use crate::model::lifecycle::Stage;
use crate::model::notification::DeliveryRecord;
use crate::model::operator::{OperatorAction, OperatorRecord};
use crate::model::reconcile_state::{Leadership, ReconcileState};
use crate::model::slot::Slot;
use crate::model::time::Timestamp;
use crate::model::version;
use crate::model::workload::{Condition, Group, Member, OnAbsent, Role, Workload};
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

impl State {
    pub fn is_delivered(&self, notice: &str, receiver: &str) -> bool {
        self.deliveries.get(notice).is_some_and(|noted| noted.receivers.contains(receiver))
    }
}

/// Closed events that are kept, and for how long. These are no settings: every replica folds the same log, and a limit
/// that differs between two of them would make two histories of it. Whoever wants to keep more exports it.
pub const HISTORY_LIMIT: usize = 1_000;

pub const HISTORY_AGE: Duration = Duration::from_hours(90 * 24);

/// Open events. An announcement beyond is not taken up until one closes, and `beyond_the_limit` tells of it.
pub const OPEN_LIMIT: usize = 256;

/// Beyond so many, none is taken up that names nobody of this cluster: the rest is for those that do.
pub const OPEN_LIMIT_OF_OTHERS: usize = 192;

/// Workloads of one replica, configured or dialled in; a further one is refused.
pub const WORKLOAD_LIMIT: usize = 64;

/// Replicas and events are shared by its copies until one of them changes it: the state is shown anew after each batch of
/// entries of the log, and most of it is what it was before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// What entries mean; see `version`.
    pub version: u64,
    /// The time of the last entry.
    pub now: Timestamp,
    pub replicas: BTreeMap<VmName, Arc<Replica>>,
    pub open: BTreeMap<EventId, Arc<Event>>,
    /// Oldest first.
    pub history: VecDeque<Arc<Event>>,
    /// How many attempts were ever made.
    pub attempts: u64,
    /// The latest; `None` before the first.
    pub leadership: Option<Leadership>,
    /// One for every replica that ever was a voter under a leader, or fell silent.
    pub reconcile_states: BTreeMap<VmName, ReconcileState>,
    /// How many wishes of operators were ever taken over.
    pub operator_seq: u64,
    /// Those about no single event, oldest first.
    pub operator_records: Vec<OperatorRecord>,
    /// What other systems were told of late.
    pub deliveries: BTreeMap<String, DeliveryRecord>,
    /// The members that are not in service because of events. One that the log does not name here is.
    pub slots: BTreeMap<Member, Slot>,
    /// How many slots were ever taken.
    pub stints: u64,
    /// The replicas that an operator removed, in that order; see `exclusion`.
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

/// One replica as far as the log knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replica {
    /// Those of its configuration; see `effective`.
    pub workloads: Vec<Workload>,
    /// Those that dialled in.
    pub sessions: BTreeMap<WorkloadName, Workload>,
    /// As they were registered when a hook took them away, with those of their hooks that bring them back and are not
    /// registered any more.
    pub owed_workloads: BTreeMap<WorkloadName, Workload>,
    /// What was noted of its workloads.
    pub conditions: BTreeMap<WorkloadName, Condition>,
    /// Since when those are away that are.
    pub disconnected: BTreeMap<WorkloadName, Timestamp>,
    /// Since when those are not ready that answer so.
    pub unready: BTreeMap<WorkloadName, Timestamp>,
    /// The groups of its configuration.
    pub groups: Vec<Group>,
    /// How many of its documents were taken over.
    pub reports: u64,
    /// The latest; `None` before the first.
    pub document: Option<Document>,
    /// Since when the document is too old to count; `None` while it counts.
    pub stale_since: Option<Timestamp>,
    /// Since when the leader has not heard from it; `None` while it does.
    pub unreachable: Option<Timestamp>,
}

impl Replica {
    /// The workloads that count, each name once: the one that dialled in, unless it is away and wants the configured
    /// one of its name to stand in for it.
    pub fn effective(&self) -> impl Iterator<Item = &Workload> {
        let unpaired = self.workloads.iter().filter(|workload| !self.sessions.contains_key(&workload.name));
        unpaired.chain(self.sessions.values().map(|workload| self.fallback_of(workload).unwrap_or(workload)))
    }

    pub fn workload(&self, name: &WorkloadName) -> Option<&Workload> {
        match self.sessions.get(name) {
            Some(workload) => Some(self.fallback_of(workload).unwrap_or(workload)),
            None => self.workloads.iter().find(|workload| workload.name == *name),
        }
    }

    fn fallback_of(&self, dialled: &Workload) -> Option<&Workload> {
        let wants_it = dialled.on_absent == OnAbsent::Command && self.is_absent(dialled);
        self.workloads.iter().find(|workload| wants_it && workload.name == dialled.name)
    }

    pub fn condition(&self, name: &WorkloadName) -> Condition {
        self.conditions.get(name).copied().unwrap_or_default()
    }

    /// It dialled in and is away; one that is configured never is.
    pub fn is_absent(&self, workload: &Workload) -> bool {
        workload.is_session() && !self.condition(&workload.name).connected
    }

    /// It has a workload of the group.
    pub fn has(&self, group: &GroupName) -> bool {
        self.effective().any(|workload| workload.group.as_ref() == Some(group))
    }

    /// One of its workloads of the group is not away.
    pub fn is_connected(&self, group: &GroupName) -> bool {
        self.effective().any(|workload| workload.group.as_ref() == Some(group) && !self.is_absent(workload))
    }

    /// Somebody registered a workload of this name.
    pub(crate) fn knows(&self, name: &WorkloadName) -> bool {
        self.sessions.contains_key(name) || self.workloads.iter().any(|workload| workload.name == *name)
    }

    /// The status its current document gives an event; `None` when it does not list it or no longer counts.
    pub fn lists_event(&self, event: &EventId) -> Option<&Status> {
        if self.stale_since.is_some() {
            return None;
        }
        self.document.as_ref()?.get(event).map(|announcement| &announcement.status)
    }

    /// It listed the event and its current document no longer does.
    pub(crate) fn no_longer_lists(&self, event: &EventId) -> bool {
        self.stale_since.is_none() && self.document.as_ref().is_some_and(|document| document.get(event).is_none())
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

    /// The open ones, then the closed ones.
    pub fn events(&self) -> impl Iterator<Item = &Event> + Clone {
        self.open_events().chain(self.closed_events())
    }

    /// What operators asked for about the event, and about all events while it was open.
    pub fn records_about<'a>(
        &'a self,
        event: &'a Event,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a OperatorRecord> + use<'a> {
        let closed = event.entered_at(Stage::Closed).unwrap_or(now);
        let ends = |wish: &OperatorRecord| match wish.what {
            OperatorAction::Hold { until, .. } | OperatorAction::Pause { until } => until,
            OperatorAction::Release
            | OperatorAction::Approve { .. }
            | OperatorAction::Resume
            | OperatorAction::Restored(_)
            | OperatorAction::ClusterChange(_) => wish.at,
        };
        let is_of_its_time = move |wish: &&OperatorRecord| wish.at <= closed && ends(wish) >= event.first_seen();
        event.operator_records.iter().chain(self.operator_records.iter().filter(is_of_its_time))
    }

    pub fn workload(&self, member: &Member) -> Option<&Workload> {
        self.replicas.get(&member.vm)?.workload(&member.workload)
    }

    /// Somebody knows what the member is restored by: it is registered, or was when it was taken away.
    pub fn is_restorable(&self, member: &Member) -> bool {
        let replica = self.replicas.get(&member.vm);
        replica.is_some_and(|it| it.knows(&member.workload) || it.owed_workloads.contains_key(&member.workload))
    }

    /// Every effective workload of every VM.
    pub fn workloads(&self) -> impl Iterator<Item = (&VmName, &Workload)> {
        self.replicas.iter().flat_map(|(vm, replica)| replica.effective().map(move |workload| (vm, workload)))
    }

    /// `None` of a workload that nobody registered.
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

    /// What it dials in with is not there; its hooks cannot be run on its VM.
    pub fn is_absent(&self, member: &Member) -> bool {
        let replica = self.replicas.get(&member.vm);
        replica.is_some_and(|replica| replica.workload(&member.workload).is_some_and(|it| replica.is_absent(it)))
    }

    /// The furthest status that any current document shows.
    pub fn observed_status(&self, event: &EventId) -> Option<&Status> {
        self.replicas.values().filter_map(|replica| replica.lists_event(event)).max()
    }

    /// The event as all current documents together show it (`members.md` 3, D1); `None` when none lists it.
    pub fn shown(&self, event: &EventId) -> Option<Announcement> {
        self.shown_with(event, None)
    }

    /// The same if the current document of this replica were that one.
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

    /// Some current document lists the event.
    pub fn is_listed(&self, event: &EventId) -> bool {
        self.observed_status(event).is_some()
    }

    /// Every replica that listed the event says that it is gone, or no longer counts beside one that says so.
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
