//! Facts that an isolated replica knows beside the applied log.

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
    /// Time since which this replica has no leader, and no reachable replica reports a leader.
    pub since: Timestamp,
    /// The voters in the order of the configuration, this replica included. Empty when this replica was removed.
    pub voters: Vec<VmName>,
    /// The voters that answer this replica.
    pub reached: BTreeMap<VmName, PeerAnswer>,
    /// The document of this replica's endpoint, as far as trusted; `None` while the metadata channel does not work.
    pub document: Option<Document>,
    /// Time since which the documents of this replica have listed an event without a gap.
    pub seen_since: BTreeMap<EventId, Timestamp>,
    /// The log's time advanced by a monotonic clock, never ahead of cluster time: a timestamp of the log that is past
    /// by this time is past for the cluster.
    pub log_time: Timestamp,
    /// The entries of this replica's log that are not applied here: the other replicas may know that these entries are
    /// committed.
    pub tail: Vec<Entry>,
    /// The last readiness answer of each workload of this replica.
    pub readiness: BTreeMap<WorkloadName, Readiness>,
    /// The isolated approvals of this replica; the log may lack them.
    pub journal: Vec<JournalEntry>,
}

/// The answer of a replica to a replica without a leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerAnswer {
    /// The leader that the answering replica follows, perhaps the answering replica itself; never the replica that
    /// asked, which has no quorum then.
    pub leader: Option<String>,
    /// Whether the metadata endpoint of the answering replica answers, for the status of the replica that asked.
    pub channel: ImdsHealth,
}

impl IsolatedView {
    pub fn listed(&self, id: &EventId) -> Option<&Announcement> {
        self.document.as_ref()?.get(id)
    }

    /// Without this replica the other voter of a pair has no quorum either. The other voters of three or more may have
    /// a quorum, and an isolated replica cannot know their decisions.
    pub fn is_one_of_a_pair(&self) -> bool {
        self.voters.len() == 2
    }

    /// The voters without an answer to `me`.
    pub fn unreachable_voters(&self, me: &VmName) -> Vec<VmName> {
        self.voters.iter().filter(|name| *name != me && !self.reached.contains_key(*name)).cloned().collect()
    }
}

/// The health of the channel between a replica and the metadata endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ImdsHealth {
    /// The endpoint has not answered yet.
    Unknown,
    Healthy,
    /// No validated document for `stall_after`.
    Stalled,
}

string_enum!(ImdsHealth { Unknown => "unknown", Healthy => "healthy", Stalled => "stalled" });
