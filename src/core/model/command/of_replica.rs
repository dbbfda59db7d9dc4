//! Commands about replicas, their documents and their workloads.

use crate::model::document::Document;
use crate::model::id::{VmName, WorkloadName};
use crate::model::isolated_approval::JournalEntry;
use crate::model::notification::Delivery;
use crate::model::workload::{Condition, Group, Workload};
use alloc::vec::Vec;

/// The workloads and groups of the proposing replica's configuration; replaces the earlier registration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RegisterWorkloads {
    pub workloads: Vec<Workload>,
    pub groups: Vec<Group>,
}

/// The current document of the proposing replica's endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReportDocument {
    /// The number of reports of this replica in the log: a repeated or overtaken report does not match.
    pub after: u64,
    pub document: Document,
}

/// The leader has received nothing from this replica, or the replica's channel is stalled, for so long that its
/// document no longer counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MarkDocumentStale {
    pub replica: VmName,
}

/// The leader has received nothing from this replica for some time, or receives status reports again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordReachability {
    pub replica: VmName,
    pub reachable: bool,
}

/// This replica is no longer a member: mandatory restores of its workloads are not waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AbandonRestores {
    pub replica: VmName,
}

/// The proposing replica leads; only the leader may claim from here on. Starts a new reconciliation number for every
/// voter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BeginLeadership {
    pub term: u64,
    /// How often the leader has found a quorum within the term.
    pub turn: u64,
    pub voters: Vec<VmName>,
}

/// The leader has received nothing from this voter for so long that the voter may come to act alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SuspectReplica {
    pub replica: VmName,
    pub number: u64,
}

/// An operator vouches that this replica, which is no longer a member, does not run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClearSuspect {
    pub replica: VmName,
}

/// An operator removes this replica: the replica is not added again automatically.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExcludeReplica {
    pub replica: VmName,
}

/// An operator adds this replica, which may have been excluded before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReadmitReplica {
    pub replica: VmName,
}

/// The isolated approvals of the proposing replica, as in its journal; reconciles the replica under the current number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReconcileJournal {
    pub number: u64,
    pub journal: Vec<JournalEntry>,
}

/// This replica's VM is deleted by an event, and the replica is no longer a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DecommissionReplica {
    pub replica: VmName,
}

/// A workload has connected to the proposing replica; replaces the earlier registration of this name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RegisterSession {
    pub workload: Workload,
}

/// A session workload of the proposing replica deregisters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeregisterSession {
    pub workload: WorkloadName,
    /// Also while an event prepares the workload: by an operator or a user with the right to do so, or
    /// because the configuration no longer permits the workload.
    pub forced: bool,
}

/// The changed conditions of the workloads on the proposing replica's VM.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UpdateConditions {
    pub conditions: Vec<(WorkloadName, Condition)>,
}

/// Notifications were delivered to other systems, and are not sent again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordDeliveries {
    pub deliveries: Vec<Delivery>,
}

/// Every replica knows this cluster version, so entries have the meaning of this version from here on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RaiseVersion {
    pub version: u64,
}
