//! One replica as the log knows it.

use crate::model::document::{Document, Status};
use crate::model::id::{EventId, GroupName, WorkloadName};
use crate::model::time::Timestamp;
use crate::model::workload::{Condition, Group, OnAbsent, Workload};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// One replica as the log knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replica {
    /// The configured workloads; see `effective`.
    pub workloads: Vec<Workload>,
    /// The session workloads.
    pub sessions: BTreeMap<WorkloadName, Workload>,
    /// The workloads as registered when a hook took their service away, with the hooks that restore them and are not
    /// registered any more.
    pub owed_workloads: BTreeMap<WorkloadName, Workload>,
    /// The last known conditions of the workloads.
    pub conditions: BTreeMap<WorkloadName, Condition>,
    /// Time since which a workload is disconnected.
    pub disconnected: BTreeMap<WorkloadName, Timestamp>,
    /// Time since which a workload answers "not ready".
    pub unready: BTreeMap<WorkloadName, Timestamp>,
    /// The configured groups.
    pub groups: Vec<Group>,
    /// The number of documents accepted from this replica.
    pub reports: u64,
    /// The latest document; `None` before the first.
    pub document: Option<Document>,
    /// Time since which the document is too old to count; `None` while the document counts.
    pub stale_since: Option<Timestamp>,
    /// Time since which the leader has received nothing from the replica; `None` while the replica is reachable.
    pub unreachable: Option<Timestamp>,
}

impl Replica {
    /// The workloads that count, each name once: the session workload, unless the session is disconnected and the
    /// workload falls back to the configured workload of the same name.
    pub fn effective(&self) -> impl Iterator<Item = &Workload> {
        let unpaired = self.workloads.iter().filter(|workload| !self.sessions.contains_key(&workload.name));
        unpaired.chain(self.sessions.values().map(|workload| self.fallback_of(workload).unwrap_or(workload)))
    }

    pub fn workload(&self, name: &WorkloadName) -> Option<&Workload> {
        match self.sessions.get(name) {
            Some(workload) => Some(self.fallback_of(workload).unwrap_or(workload)),
            None => self.configured(name),
        }
    }

    fn configured(&self, name: &WorkloadName) -> Option<&Workload> {
        self.workloads.iter().find(|workload| workload.name == *name)
    }

    fn fallback_of(&self, dialled: &Workload) -> Option<&Workload> {
        let wants_it = dialled.on_absent == OnAbsent::Command && self.is_absent(dialled);
        self.configured(&dialled.name).filter(|_| wants_it)
    }

    pub fn condition(&self, name: &WorkloadName) -> Condition {
        self.conditions.get(name).copied().unwrap_or_default()
    }

    /// A session workload that is disconnected; a configured workload never is.
    pub fn is_absent(&self, workload: &Workload) -> bool {
        workload.is_session() && !self.condition(&workload.name).connected
    }

    /// The replica has a workload of the group.
    pub fn has(&self, group: &GroupName) -> bool {
        self.effective().any(|workload| workload.group.as_ref() == Some(group))
    }

    /// At least one workload of the group on this replica is connected.
    pub fn is_connected(&self, group: &GroupName) -> bool {
        self.effective().any(|workload| workload.group.as_ref() == Some(group) && !self.is_absent(workload))
    }

    /// A workload of this name is registered.
    pub(crate) fn knows(&self, name: &WorkloadName) -> bool {
        self.sessions.contains_key(name) || self.configured(name).is_some()
    }

    /// The status of an event in the current document of the replica; `None` when the document does not list the event
    /// or no longer counts.
    pub fn lists_event(&self, event: &EventId) -> Option<&Status> {
        if self.stale_since.is_some() {
            return None;
        }
        self.document.as_ref()?.get(event).map(|announcement| &announcement.status)
    }

    /// The replica listed the event, and the current document does not.
    pub(crate) fn no_longer_lists(&self, event: &EventId) -> bool {
        self.stale_since.is_none() && self.document.as_ref().is_some_and(|document| document.get(event).is_none())
    }
}
