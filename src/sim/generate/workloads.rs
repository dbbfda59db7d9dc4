//! The hooks of the workloads, and how they behave.

use std::time::Duration;

use super::super::program::Habits;
use super::super::random::Random;
use allclear_core::model::id::{GroupName, WorkloadName};
use allclear_core::model::workload::{Hook, OnAbsent, OnFailure, Origin, Phase, RunsOn, Workload};

pub(super) fn habits(random: &mut Random) -> Habits {
    if random.percent(45) {
        return Habits { takes: (100, random.between(200, 6000)), ..Habits::default() };
    }
    Habits {
        fails: random.between(0, 15),
        hangs: random.between(0, 12),
        blocked: random.between(0, 8),
        unknown: random.between(0, 8),
        not_applicable: random.between(0, 10),
        twice: random.between(0, 20),
        extends: random.between(0, 20),
        takes: (100, random.between(500, 20_000)),
    }
}

pub(super) fn workloads(random: &mut Random, replicas: usize) -> Vec<Vec<Workload>> {
    let group = random.percent(95).then(|| GroupName("g".into()));
    let mut same = vec![workload(random, "w", group, Origin::Configured)];
    if random.percent(25) {
        let mut other = workload(random, "x", None, Origin::Configured);
        if random.percent(40) {
            other.after = vec![WorkloadName("w".into())];
        }
        same.push(other);
    }
    vec![same; replicas]
}

pub(super) fn workload(random: &mut Random, name: &str, group: Option<GroupName>, origin: Origin) -> Workload {
    let mut hooks = Vec::new();
    for phase in [Phase::Checkpoint, Phase::Failover, Phase::Drain, Phase::Shutdown] {
        if random.percent(30) {
            hooks.push(hook(random, phase));
        }
    }
    if !hooks.is_empty() {
        hooks.extend(random.percent(70).then(|| hook(random, Phase::Restore)));
        hooks.extend(random.percent(25).then(|| hook(random, Phase::Ready)));
    }
    let on_absent = *random.pick(&[OnAbsent::Hold, OnAbsent::Skip, OnAbsent::Command]);
    Workload { name: WorkloadName(name.into()), group, after: Vec::new(), hooks, origin, on_absent }
}

fn hook(random: &mut Random, phase: Phase) -> Hook {
    let is_before = phase < Phase::Restore;
    let timeout = random.secs(5, 40);
    Hook {
        command_digest: timeout.as_secs(),
        timeout,
        max_attempts: u32::try_from(random.between(1, 3)).unwrap_or(1),
        on_failure: if random.percent(50) { OnFailure::Hold } else { OnFailure::Continue },
        runs_on: if is_before {
            random.weighted(&[(70, RunsOn::Affected), (15, RunsOn::Peer), (15, RunsOn::Any)])
        } else {
            RunsOn::Affected
        },
        can_confirm: random.percent(50),
        can_undo: is_before && random.percent(25),
        min_freeze: random.percent(15).then(|| Duration::from_secs(5)),
        fresh_for: random.percent(10).then(|| Duration::from_secs(10)),
        optional_if_short: random.percent(10),
        exclusive: is_before && random.percent(10),
        ..Hook::of(phase)
    }
}
