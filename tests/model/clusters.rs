//! Bounded clusters for exploration, composed from their differences.

use std::time::Duration;

use allclear::core::model::document::Source;
use allclear::core::model::id::{GroupName, WorkloadName};
use allclear::core::model::workload::{Hook, OnAbsent, OnFailure, Origin, Phase, RunsOn, Workload};

use crate::mutant::Mutant;
use crate::world::{Cluster, Trouble};

pub(crate) fn hook(phase: Phase, on_failure: OnFailure) -> Hook {
    Hook { max_attempts: 1, on_failure, ..Hook::of(phase) }
}

pub(crate) fn workload(hooks: Vec<Hook>) -> Workload {
    Workload {
        name: WorkloadName("w".into()),
        group: None,
        after: Vec::new(),
        hooks,
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    }
}

/// A drain which must succeed, a shutdown which need not succeed, and a restore.
pub(crate) fn two_steps() -> Workload {
    workload(vec![
        hook(Phase::Drain, OnFailure::Hold),
        hook(Phase::Shutdown, OnFailure::Continue),
        hook(Phase::Restore, OnFailure::Hold),
    ])
}

/// A failover which runs on a peer and can be confirmed.
pub(crate) fn failover() -> Workload {
    let failover = Hook { can_confirm: true, runs_on: RunsOn::Any, ..hook(Phase::Failover, OnFailure::Hold) };
    let group = Some(GroupName("g".into()));
    Workload { group, ..workload(vec![failover, hook(Phase::Restore, OnFailure::Hold)]) }
}

/// A drain which must succeed, and a restore.
pub(crate) fn one_step() -> Workload {
    workload(vec![hook(Phase::Drain, OnFailure::Hold), hook(Phase::Restore, OnFailure::Hold)])
}

/// A drain which must succeed, without a restore.
pub(crate) fn unrestored() -> Workload {
    workload(vec![hook(Phase::Drain, OnFailure::Hold)])
}

/// A drain which can be confirmed.
pub(crate) fn askable() -> Workload {
    workload(vec![Hook { can_confirm: true, max_attempts: 2, ..hook(Phase::Drain, OnFailure::Hold) }])
}

/// The workload `of` as a session workload, which may be disconnected.
pub(crate) fn dialled(on_absent: OnAbsent, of: Workload) -> Workload {
    Workload { origin: Origin::Session { owner: 0 }, on_absent, ..of }
}

/// A failover and a drain which can be undone.
pub(crate) fn reversible() -> Workload {
    let reversible_hook = |phase| Hook { can_undo: true, ..hook(phase, OnFailure::Hold) };
    workload(vec![
        reversible_hook(Phase::Failover),
        reversible_hook(Phase::Drain),
        hook(Phase::Restore, OnFailure::Hold),
    ])
}

/// An exclusive drain: at most one runs in the cluster.
pub(crate) fn one_at_a_time() -> Workload {
    workload(vec![Hook { exclusive: true, ..hook(Phase::Drain, OnFailure::Hold) }])
}

pub(crate) fn cluster(replicas: usize, source: Source, workload: Option<Workload>) -> Cluster {
    Cluster {
        replicas,
        events: vec![vec![0]],
        grows: Vec::new(),
        source,
        workload,
        wishes: 0,
        faults: 0,
        trouble: Trouble::Losses,
        drill: false,
        changes: 0,
        sick: 0,
        failures: None,
        cancels: true,
        returns: 0,
        repost_after: Duration::from_hours(1),
        prepare_ahead: Duration::from_hours(1),
        is_patient: false,
        mutant: Mutant::None,
    }
}

/// Several events for members of one group, each with the given replicas.
pub(crate) fn of_a_group(events: &[&[usize]], cluster: Cluster) -> Cluster {
    let group = Some(GroupName("g".into()));
    let workload = cluster.workload.unwrap_or_else(|| workload(Vec::new()));
    let events = events.iter().map(|named| named.to_vec()).collect();
    Cluster { events, workload: Some(Workload { group, ..workload }), ..cluster }
}

/// An event which had started or was gone is shown as to come again, up to `returns` times.
pub(crate) fn returning(returns: u8, cluster: Cluster) -> Cluster {
    Cluster { returns, ..cluster }
}

/// Accepted approvals are posted once more.
pub(crate) fn reposting(cluster: Cluster) -> Cluster {
    Cluster { repost_after: Duration::from_mins(1), ..cluster }
}

/// The preparation starts 30 s before the notice ends, and operators may ask for an earlier start.
pub(crate) fn long_notice(cluster: Cluster) -> Cluster {
    Cluster { prepare_ahead: Duration::from_secs(30), ..cluster }
}

/// Hooks fail at most `failures` times, and the world changes only when no action is pending.
pub(crate) fn patient(failures: u8, cluster: Cluster) -> Cluster {
    Cluster { failures: Some(failures), is_patient: true, ..cluster }
}

/// Members stop being ready, or are ready again, up to `sick` times; a readiness hook is added.
pub(crate) fn sick(sick: u8, cluster: Cluster) -> Cluster {
    let with_question = |of: Workload| {
        let hooks = of.hooks.iter().cloned().chain([hook(Phase::Ready, OnFailure::Hold)]).collect();
        Workload { hooks, ..of }
    };
    Cluster { sick, workload: cluster.workload.map(with_question), ..cluster }
}

/// The event names one more replica from some moment on.
pub(crate) fn growing(event: usize, more: usize, cluster: Cluster) -> Cluster {
    let mut grows = vec![None; cluster.events.len()];
    grows[event] = Some(more);
    Cluster { grows, ..cluster }
}

/// A second event, for another member of the same group.
pub(crate) fn two_events(cluster: Cluster) -> Cluster {
    of_a_group(&[&[0], &[1]], cluster)
}

/// A second event, for the same VM.
pub(crate) fn for_one_vm(cluster: Cluster) -> Cluster {
    Cluster { events: vec![vec![0], vec![0]], ..cluster }
}

/// Workloads change up to `changes` times, at any moment.
pub(crate) fn changing(changes: u8, cluster: Cluster) -> Cluster {
    Cluster { changes, ..cluster }
}

/// A drill for the VM of the first event.
pub(crate) fn drilling(cluster: Cluster) -> Cluster {
    Cluster { drill: true, ..cluster }
}

pub(crate) fn with(faults: u8, trouble: Trouble, cluster: Cluster) -> Cluster {
    Cluster { faults, trouble, ..cluster }
}

/// Operators make up to `wishes` requests, at any moment.
pub(crate) fn asked(wishes: u8, cluster: Cluster) -> Cluster {
    Cluster { wishes, ..cluster }
}
