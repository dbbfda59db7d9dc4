//! Facts that an isolated replica knows beside its applied log.

use crate::model::command::Entry;
use crate::model::document::{Announcement, Document};
use crate::model::id::{EventId, VmName, WorkloadName};
use crate::model::isolated_approval::JournalEntry;
use crate::model::time::Timestamp;
use crate::model::workload::Readiness;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IsolatedView {
    /// Since when it hears no leader, and nobody it reaches tells of one.
    pub since: Timestamp,
    /// In the order of the configuration, this replica among them. Empty when it was removed.
    pub voters: Vec<VmName>,
    /// The voters that answer it.
    pub reached: BTreeMap<VmName, PeerAnswer>,
    /// What its endpoint says, as far as it is believed; `None` while its channel does not work.
    pub document: Option<Document>,
    /// Since when its documents have listed an event without a break.
    pub seen_since: BTreeMap<EventId, Timestamp>,
    /// The log's time carried on by a steady clock, never ahead of the cluster's: what the log dates is over by it.
    pub log_time: Timestamp,
    /// The entries of its log that it has not applied: the others may know that they are committed.
    pub tail: Vec<Entry>,
    /// What its own workloads answered last when they were asked whether they are ready.
    pub readiness: BTreeMap<WorkloadName, Readiness>,
    /// What it did alone and the log may not know.
    pub journal: Vec<JournalEntry>,
}

/// What a replica answered to one which hears no leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerAnswer {
    /// Whom it hears, perhaps itself; not the replica that asked, which has no quorum then.
    pub leader: Option<String>,
    /// Whether its metadata endpoint answers, for the status of this replica.
    pub channel: ImdsHealth,
}

impl IsolatedView {
    pub fn listed(&self, id: &EventId) -> Option<&Announcement> {
        self.document.as_ref()?.get(id)
    }

    /// Without this replica the other voter of a pair has no quorum either. The others of three or more may have one,
    /// and an isolated replica cannot know what they decide.
    pub fn is_one_of_a_pair(&self) -> bool {
        self.voters.len() == 2
    }

    /// The voters that do not answer `me`.
    pub fn unreachable_voters(&self, me: &VmName) -> Vec<VmName> {
        self.voters.iter().filter(|name| *name != me && !self.reached.contains_key(*name)).cloned().collect()
    }
}

/// The health of a replica's way to its metadata endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ImdsHealth {
    /// It has not answered yet.
    Unknown,
    Healthy,
    /// No validated document for `stall_after`.
    Stalled,
}

string_enum!(ImdsHealth { Unknown => "unknown", Healthy => "healthy", Stalled => "stalled" });
