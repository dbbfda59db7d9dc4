//! A world before it is run: who is in it, and everything that is done to it from outside. Plain data.

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
    /// So many of them vote, as long as there are so many.
    pub voters: usize,
    /// Of every group.
    pub max_unavailable: u32,
    pub policy: Policy,
    pub timing: Timing,
    /// The configured ones of each VM.
    pub workloads: Vec<Vec<Workload>>,
    pub habits: Habits,
    /// How far each wall clock is ahead of the right time, in milliseconds.
    pub clocks: Vec<i64>,
    /// Metadata endpoints tell the platform's time.
    pub are_answers_dated: bool,
    /// In the order of time.
    pub happenings: Vec<ScenarioStep>,
    /// From here on nothing goes wrong any more.
    pub heal_at: Duration,
}

#[derive(Clone, Debug)]
pub struct ScenarioStep {
    /// From the beginning, or from a moment that has to come first.
    pub at: Duration,
    pub after: Option<TriggerPoint>,
    pub what: ScenarioAction,
}

/// Something that happens in the course of a run, and for which time. What goes wrong just then finds most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerPoint {
    /// A claim is committed.
    Claim(u32),
    /// An attempt at a hook is committed.
    Begin(u32),
    /// An approver asks whether its claim is still in force.
    Confirm(u32),
    /// An approval leaves a machine.
    Post(u32),
}

#[derive(Clone, Debug)]
pub enum ScenarioAction {
    Announce(Box<EventPlan>),
    Fault(Fault),
    /// Somebody asks this replica.
    Wish(usize, ScenarioRequest),
    /// The workload on this VM becomes something else by itself.
    Role(usize, Role),
    /// A workload dials in at this VM, or comes back.
    Come(usize, Box<Workload>),
    /// It goes away: with a farewell, or not.
    Go(usize, bool),
}

/// About the event that stands at this place among the open ones, as the replica that is asked knows them.
#[derive(Clone, Copy, Debug)]
pub enum ScenarioRequest {
    Hold(usize, Duration),
    Release(usize),
    Pause(Duration),
    Resume,
    Approve(usize),
    /// The first hook that is not settled.
    Skip(usize),
}

/// What goes wrong, at which machine if it is of one, and for how long if it lasts.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    pub vm: usize,
    pub lasts: Duration,
    pub kind: FaultKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum FaultKind {
    /// The process dies; hooks go on, unless the whole machine goes down.
    Crash {
        whole: bool,
    },
    /// The process is stopped; its steady clock goes on, or the machine is paused and it does not.
    Pause {
        stops_clock: bool,
    },
    /// Nothing gets from these to the others, nor back unless it is in one direction only.
    Cut {
        vms: Vec<usize>,
        both: bool,
    },
    /// Messages take up to so much longer, and overtake each other.
    Slow {
        by: Duration,
    },
    /// Messages of some kinds are delivered twice, the second time later.
    Twice,
    /// Answers to proposals are lost.
    Unanswered,
    /// The next write fails, before it is on the disk or just after, and the process dies of it.
    DiskFails {
        is_written: bool,
    },
    /// The machine goes down and comes back with an empty disk.
    DiskLost,
    /// The process ends, and begins again with other workloads in its configuration.
    Reconfigured(ConfigChange),
    DiskSlow {
        by: Duration,
    },
    /// What is committed is applied so much later.
    ApplySlow {
        by: Duration,
    },
    ClockJump {
        by: i64,
    },
    Endpoint(FaultClass),
    /// The incarnations of all documents start again.
    Incarnations,
}

/// How the workloads of a replica's configuration change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigChange {
    /// There is another hook before the others of a phase.
    OneMore(Phase),
    /// All hooks run something else.
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

/// What a metadata endpoint does instead of answering.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultClass {
    Silent,
    /// 200 and nothing in it.
    Empty,
    /// 429 or 500.
    Status(u16),
    /// Every other answer is the first document it ever gave.
    Old,
    /// Every other answer lacks its events.
    Missing,
    /// Of each event that names several VMs only the first is shown.
    Partial,
    /// Each event is shown to name every VM.
    Whole,
    /// Ids come in small letters.
    OtherLetters,
    /// Answers take so many seconds.
    Slow(u64),
    /// Posts do not get there.
    PostsLost,
    /// Posts get there and nobody hears of it.
    RepliesLost,
    /// Posts are refused.
    PostsRefused(u16),
    /// Posts take this long to get there, in seconds.
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
