//! Settings that are valid, and probably not intended.

use std::collections::BTreeMap;

use crate::config::Config;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::Phase;

/// A doubtful setting, and the correction.
pub struct Doubt {
    pub what: String,
    pub remedy: String,
}

/// The doubtful settings of the configuration. Other VMs may have further workloads, so no doubt is a mistake.
pub fn doubts(config: &Config) -> Vec<Doubt> {
    unknown_predecessors(config).chain(harmless_limits(config)).chain(starved_failovers(config)).collect()
}

/// Entries of `after` without a workload of the configuration.
fn unknown_predecessors(config: &Config) -> impl Iterator<Item = Doubt> {
    config.workloads.iter().flat_map(|workload| {
        let is_here = |name: &WorkloadName| config.workloads.iter().any(|other| other.name == *name);
        workload.after.iter().filter(move |name| !is_here(name)).map(|name| Doubt {
            what: format!("`after` of the workload {} names {name}, and this file has no such workload", workload.name),
            remedy: format!("correct the name, unless {name} is a workload of another VM or registers itself"),
        })
    })
}

/// Failovers that a user's event may not leave time for: its budget ends while an earlier hook runs.
fn starved_failovers(config: &Config) -> impl Iterator<Item = Doubt> {
    let budget = config.policy.user_budget;
    config.workloads.iter().filter_map(move |workload| {
        let longest = |phase| {
            let of_phase = workload.hooks.iter().map(|hook| &hook.registered).filter(move |hook| hook.phase == phase);
            of_phase.map(|hook| hook.timeout).max().unwrap_or_default()
        };
        let (before, failover) = (longest(Phase::Checkpoint), longest(Phase::Failover));
        let is_starved = !before.is_zero() && !failover.is_zero() && before + failover > budget;
        is_starved.then(|| Doubt {
            what: format!(
                "the checkpoint and the failover of the workload {} may take {} together, and `user_budget` is {}: a \
                 user-initiated event may be approved before the failover is done",
                workload.name,
                humantime::format_duration(before + failover),
                humantime::format_duration(budget),
            ),
            remedy: "shorten `timeout` of the checkpoint, or raise `user_budget`".to_owned(),
        })
    })
}

/// Groups with a limit that protects no member.
fn harmless_limits(config: &Config) -> impl Iterator<Item = Doubt> {
    let mut here = BTreeMap::new();
    for group in config.workloads.iter().filter_map(|workload| workload.group.as_ref()) {
        *here.entry(group).or_insert(0) += 1;
    }
    let replicas = config.cluster.replicas.len();
    config.groups.iter().filter_map(move |group| {
        // The configurations of the VMs have nearly the same workloads.
        let members = replicas * here.get(&group.name).copied().unwrap_or_default();
        let is_harmless = members > 1 && usize::try_from(group.max_unavailable).is_ok_and(|most| most >= members);
        is_harmless.then(|| Doubt {
            what: format!(
                "`max_unavailable` of the group {} is {}, and the group has about {members} members: hooks may stop all \
                 of them at once",
                group.name, group.max_unavailable
            ),
            remedy: format!("write {} or less, usually 1", members - 1),
        })
    })
}
