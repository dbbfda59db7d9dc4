//! Workloads and their hooks, as registered in the log. The command or the address of a hook stays with its replica.

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
    /// Workloads, by name and on any VM, that are prepared before this workload.
    pub after: Vec<WorkloadName>,
    /// In the order of execution within a phase.
    pub hooks: Vec<Hook>,
    pub origin: Origin,
    pub on_absent: OnAbsent,
}

impl Workload {
    /// The workload connects to the replica, and may be disconnected.
    pub fn is_session(&self) -> bool {
        matches!(self.origin, Origin::Session { .. })
    }

    pub fn on(&self, vm: &VmName) -> Member {
        Member { vm: vm.clone(), workload: self.name.clone() }
    }
}

/// Workloads that replicate the same data, as configured. A group without configuration may lose one member at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    pub name: GroupName,
    /// How many members may be unavailable at once; at least 1.
    pub max_unavailable: u32,
}

/// A hook of a workload for one phase.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of the hook, independent of the others")]
pub struct Hook {
    pub phase: Phase,
    /// Identifies the hook even when the command changes.
    pub name: Option<String>,
    /// A digest of the command; identifies a hook without a name.
    pub command_digest: u64,
    pub timeout: Duration,
    /// The maximum number of runs; at least 1.
    pub max_attempts: u32,
    pub on_failure: OnFailure,
    pub runs_on: RunsOn,
    /// The hook can be asked whether the action is done.
    pub can_confirm: bool,
    pub can_undo: bool,
    /// In a dry run the hook reports the planned actions and changes nothing.
    pub can_dry_run: bool,
    /// Freezes known to be shorter do not need the hook.
    pub min_freeze: Option<Duration>,
    /// A `done` older than this is confirmed again before the claim.
    pub fresh_for: Option<Duration>,
    /// The hook is skipped when the notice is shorter than `worst`.
    pub optional_if_short: bool,
    /// The longest known run; `None`: the timeout.
    pub worst: Option<Duration>,
    /// The usual duration of a run.
    pub expected: Option<Duration>,
    /// At most one runs at a time in the cluster.
    pub exclusive: bool,
    /// The event types of the hook; empty: all.
    pub event_types: Vec<EventType>,
}

impl Hook {
    /// A hook with defaults for everything but the phase.
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

/// How a workload was registered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// By the configuration of its VM's replica.
    Configured,
    /// By itself: the workload connects to the replica, and may be disconnected.
    Session {
        /// The user of the VM that connected first; the name belongs to this user as long as the name is registered.
        owner: u32,
    },
}

/// The effect of a disconnected session workload on the events of the VM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnAbsent {
    /// The pending actions wait for the workload.
    #[default]
    Hold,
    /// The workload is not asked for anything.
    Skip,
    /// The workload falls back to the configured workload of the same name.
    Command,
}

/// The role of a workload within the group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Role {
    #[default]
    Unknown,
    Primary,
    Replica,
}

/// Whether a workload serves, by the workload's own answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Readiness {
    /// The workload has no way to be asked, and counts as ready.
    #[default]
    Unasked,
    Ready,
    /// The answer is "not ready", or missing.
    NotReady,
}

/// The condition of a workload, as the VM's replica reported last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Condition {
    pub role: Role,
    /// Meaningful for a session workload only.
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
    /// The form that commands take, and the beginning of hook names: `db-0/postgres`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.vm, self.workload)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.workload, self.vm)
    }
}

/// In the order of execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// In a dry run only: whether the other hooks could do their part.
    Check,
    Checkpoint,
    Failover,
    Drain,
    Shutdown,
    Restore,
    /// Asked after `Restore` until the answer is "ready".
    Ready,
}

/// The effect of a permanently failed hook on the event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnFailure {
    /// The event is not approved by this cluster.
    Hold,
    Continue,
}

/// Where a hook runs, seen from the affected VM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunsOn {
    Affected,
    /// An unaffected VM of the group.
    Peer,
    /// The affected VM, or a peer while its replica is unreachable.
    Any,
}

/// Why an attempt is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Intent {
    Run,
    /// Asks whether the hook is done; changes nothing.
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
