//! A scenario: the replicas of a world and all external actions on them, before the run. Plain data.

use std::time::Duration;

use super::cloud::EventPlan;
use super::program::Habits;
use allclear_core::model::workload::{Hook, Phase, Role, Workload};
use allclear_core::planning_input::Timing;
use allclear_core::policy::Policy;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub replicas: usize,
    /// The number of voters, as long as there are enough replicas.
    pub voters: usize,
    /// The limit of every group.
    pub max_unavailable: u32,
    pub policy: Policy,
    pub timing: Timing,
    /// The configured workloads of each VM.
    pub workloads: Vec<Vec<Workload>>,
    pub habits: Habits,
    /// How far each wall clock is ahead of the right time, in milliseconds.
    pub clocks: Vec<i64>,
    /// Metadata endpoints return the platform's time.
    pub are_answers_dated: bool,
    /// Ordered by time.
    pub happenings: Vec<ScenarioStep>,
    /// From here on no fault happens.
    pub heal_at: Duration,
}

#[derive(Clone, Debug)]
pub struct ScenarioStep {
    /// Counted from the beginning, or from the trigger point in `after`, if set.
    pub at: Duration,
    pub after: Option<TriggerPoint>,
    pub what: ScenarioAction,
}

/// A point in the course of a run, with its count. Faults exactly at such a point find most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerPoint {
    /// A claim is committed.
    Claim(u32),
    /// An attempt at a hook is committed.
    Begin(u32),
    /// An approver asks for confirmation of its claim.
    Confirm(u32),
    /// An approval leaves a machine.
    Post(u32),
}

#[derive(Clone, Debug)]
pub enum ScenarioAction {
    Announce(Box<EventPlan>),
    Fault(Fault),
    /// An operator sends a request to this replica.
    Wish(usize, ScenarioRequest),
    /// The role of the workload on this VM changes by itself.
    Role(usize, Role),
    /// A session workload connects at this VM, or reconnects.
    Come(usize, Box<Workload>),
    /// The session workload disconnects: deregistered (true), or not.
    Go(usize, bool),
}

/// A request about the event at this position among the open events, as the asked replica knows them.
#[derive(Clone, Copy, Debug)]
pub enum ScenarioRequest {
    Hold(usize, Duration),
    Release(usize),
    Pause(Duration),
    Resume,
    Approve(usize),
    /// From this long after the request on.
    Prepare(usize, Duration),
    /// The first hook that is not settled.
    Skip(usize),
    /// The first hook that failed.
    Retry(usize),
}

/// A fault, at a machine if the fault is local, and for a duration if the fault lasts.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    pub vm: usize,
    pub lasts: Duration,
    pub kind: FaultKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum FaultKind {
    /// The process dies; hooks continue, unless the whole machine goes down.
    Crash {
        whole: bool,
    },
    /// The process is stopped; its monotonic clock continues, or stops if the machine is paused.
    Pause {
        stops_clock: bool,
    },
    /// No message gets from these VMs to the others, nor back if `both` is set.
    Cut {
        vms: Vec<usize>,
        both: bool,
    },
    /// Messages take up to `by` longer, and overtake each other.
    Slow {
        by: Duration,
    },
    /// Messages of some kinds are delivered twice, the second time later.
    Twice,
    /// Replies to proposals are lost.
    Unanswered,
    /// The next write fails, before or just after the disk has persisted the data, and the process dies.
    DiskFails {
        is_written: bool,
    },
    /// The machine goes down and comes back with an empty disk.
    DiskLost,
    /// The process ends, and restarts with other workloads in its configuration.
    Reconfigured(ConfigChange),
    DiskSlow {
        by: Duration,
    },
    /// Committed entries are applied later, by this duration.
    ApplySlow {
        by: Duration,
    },
    ClockJump {
        by: i64,
    },
    Endpoint(FaultClass),
    /// The incarnations of all documents restart.
    Incarnations,
}

/// How the workloads of a replica's configuration change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigChange {
    /// A further hook precedes the hooks of a phase.
    OneMore(Phase),
    /// All hooks run another command.
    Otherwise,
    Renamed,
    WithoutRestore,
    Removed,
}

impl ConfigChange {
    pub(super) fn apply(self, workloads: &mut Vec<Workload>) {
        let of = |phase: Phase| Hook { command_digest: u64::from(u16::MAX), ..Hook::of(phase) };
        for workload in &mut *workloads {
            match self {
                Self::OneMore(phase) => workload.hooks.insert(0, of(phase)),
                Self::Otherwise => workload.hooks.iter_mut().for_each(|hook| hook.command_digest += 1_000),
                Self::Renamed => workload.name.0.push('2'),
                Self::WithoutRestore => workload.hooks.retain(|hook| hook.phase != Phase::Restore),
                Self::Removed => {}
            }
        }
        if self == Self::Removed {
            workloads.clear();
        }
    }
}

/// The fault of a metadata endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultClass {
    Silent,
    /// 200 with an empty body.
    Empty,
    /// 429 or 500.
    Status(u16),
    /// Every other answer is the first document of this endpoint.
    Old,
    /// Every other answer lacks its events.
    Missing,
    /// An event with several VMs is shown with the first VM only.
    Partial,
    /// Each event is shown with every VM.
    Whole,
    /// Ids are in lower case.
    OtherLetters,
    /// The duration of an answer, in seconds.
    Slow(u64),
    /// Posts do not arrive.
    PostsLost,
    /// Posts arrive and the replies are lost.
    RepliesLost,
    /// Posts are refused.
    PostsRefused(u16),
    /// The duration until a post arrives, in seconds.
    PostsSlow(u64),
}

impl FaultClass {
    pub(super) const fn is_of_posts(self) -> bool {
        matches!(self, Self::PostsLost | Self::RepliesLost | Self::PostsRefused(_) | Self::PostsSlow(_))
    }
}

impl Scenario {
    pub(super) fn faults(&self) -> usize {
        self.happenings.iter().filter(|happening| matches!(happening.what, ScenarioAction::Fault(_))).count()
    }
}
