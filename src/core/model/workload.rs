//! Workloads and their hooks, as the log has them. The command or the address of a hook stays with its replica.

use crate::model::document::EventType;
use crate::model::id::{GroupName, VmName, WorkloadName};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

impl Phase {
    /// Hooks of this phase take service away.
    pub const fn is_disruptive(self) -> bool {
        matches!(self, Self::Failover | Self::Drain | Self::Shutdown)
    }
}

/// A workload as its VM's replica registered it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Workload {
    pub name: WorkloadName,
    pub group: Option<GroupName>,
    /// Workloads, by name and on whichever VM, that are prepared before this one.
    pub after: Vec<WorkloadName>,
    /// In the order in which they run within a phase.
    pub hooks: Vec<Hook>,
    pub origin: Origin,
    pub on_absent: OnAbsent,
}

impl Workload {
    /// It dials the replica, and may be away.
    pub fn is_session(&self) -> bool {
        matches!(self.origin, Origin::Session { .. })
    }

    pub fn on(&self, vm: &VmName) -> Member {
        Member { vm: vm.clone(), workload: self.name.clone() }
    }
}

/// The workloads that are replicas of each other, as far as they are configured. A group that nobody configured may
/// lose one member at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    pub name: GroupName,
    /// How many of its members may be unavailable at once; at least 1.
    pub max_unavailable: u32,
}

/// What a workload wants run in a phase.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of the hook, independent of the others")]
pub struct Hook {
    pub phase: Phase,
    /// By which it is the same though what it runs changes.
    pub name: Option<String>,
    /// A digest of what it runs; tells it from others where it has no name.
    pub command_digest: u64,
    pub timeout: Duration,
    /// How often it is run at the most; at least 1.
    pub max_attempts: u32,
    pub on_failure: OnFailure,
    pub runs_on: RunsOn,
    /// It can be asked whether it is done.
    pub can_confirm: bool,
    pub can_undo: bool,
    /// In a dry run it says what it would do and changes nothing.
    pub can_dry_run: bool,
    /// Freezes known to be shorter are not worth it.
    pub min_freeze: Option<Duration>,
    /// A `done` older than this is confirmed again before the claim.
    pub fresh_for: Option<Duration>,
    /// It drops out when the notice does not hold its `worst`.
    pub optional_if_short: bool,
    /// The longest it is known to take; `None`: its timeout.
    pub worst: Option<Duration>,
    /// How long it usually takes.
    pub expected: Option<Duration>,
    /// At most one runs at a time in the cluster.
    pub exclusive: bool,
    /// The types of events it is for; empty: all.
    pub event_types: Vec<EventType>,
}

impl Hook {
    /// One that says nothing of itself but its phase.
    pub const fn of(phase: Phase) -> Self {
        Self {
            phase,
            name: None,
            command_digest: 0,
            timeout: Duration::from_mins(1),
            max_attempts: 2,
            on_failure: OnFailure::Hold,
            runs_on: RunsOn::Affected,
            can_confirm: false,
            can_undo: false,
            can_dry_run: false,
            min_freeze: None,
            fresh_for: None,
            optional_if_short: false,
            worst: None,
            expected: None,
            exclusive: false,
            event_types: Vec::new(),
        }
    }
}

/// How a workload came to be registered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// By the configuration of its VM's replica.
    Configured,
    /// By itself: it dials the replica, and may be away.
    Session {
        /// The user of the VM as which it dialled in first; the name is this user's as long as it is registered.
        owner: u32,
    },
}

/// What the absence of a workload that dials in means for the events of its VM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnAbsent {
    /// What is due waits for it.
    #[default]
    Hold,
    /// Nothing is asked of it.
    Skip,
    /// The configured workload of its name stands in for it.
    Command,
}

/// What a workload is within its group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Role {
    #[default]
    Unknown,
    Primary,
    Replica,
}

/// Whether a workload serves, as it says when it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Readiness {
    /// It has nothing to be asked by, and counts as ready.
    #[default]
    Unasked,
    Ready,
    /// Or it does not answer.
    NotReady,
}

/// How a workload is doing, as its VM's replica said last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Condition {
    pub role: Role,
    /// Means something for one that dials in only.
    pub connected: bool,
    pub readiness: Readiness,
}

impl Default for Condition {
    fn default() -> Self {
        Self { role: Role::Unknown, connected: true, readiness: Readiness::Unasked }
    }
}

/// A workload on a VM.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member {
    pub vm: VmName,
    pub workload: WorkloadName,
}

impl Member {
    /// As commands take it, and hooks' names begin with it: `db-0/postgres`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.vm, self.workload)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.workload, self.vm)
    }
}

/// In the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// In a dry run alone: whether the others could do what they may have to.
    Check,
    Checkpoint,
    Failover,
    Drain,
    Shutdown,
    Restore,
    /// Asked after `Restore` until it holds.
    Ready,
}

/// What a hook that failed for good means for the event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnFailure {
    /// The event is not approved by us.
    Hold,
    Continue,
}

/// Where a hook runs, as seen from the VM it is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunsOn {
    Affected,
    /// An unaffected VM of its group.
    Peer,
    /// The affected VM, or a peer while its replica is unreachable.
    Any,
}

/// Why an attempt is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Intent {
    Run,
    /// Asks whether it is done; changes nothing.
    Confirm,
    Undo,
}

string_enum!(Phase {
    Check => "check",
    Checkpoint => "checkpoint",
    Failover => "failover",
    Drain => "drain",
    Shutdown => "shutdown",
    Restore => "restore",
    Ready => "ready",
});

string_enum!(OnAbsent { Hold => "hold", Skip => "skip", Command => "command" });

string_enum!(Role { Unknown => "unknown", Primary => "primary", Replica => "replica" });

string_enum!(Readiness { Unasked => "unasked", Ready => "ready", NotReady => "not_ready" });

string_enum!(OnFailure { Hold => "hold", Continue => "continue" });

string_enum!(RunsOn { Affected => "affected", Peer => "peer", Any => "any" });

string_enum!(Intent { Run => "run", Confirm => "confirm", Undo => "undo" });
