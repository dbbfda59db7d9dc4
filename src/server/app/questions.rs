//! Makes the role, readiness and check queries of this VM's workloads from the configuration.

use std::time::Duration;

use super::hook_commands;
use crate::config::{self, Config};
use crate::hooks::{Owner, ProbeHook, RoleSource};
use crate::replica::Questions;
use crate::replica::check_poller::CheckProbe;
use crate::replica::readiness_poller::ReadinessProbe;
use crate::replica::role_poller::PolledRole;
use allclear_core::model::id::VmName;
use allclear_core::model::workload::Phase;

/// All role, readiness and check queries, which also run outside of events.
pub(super) fn all(config: &Config, vm: &VmName) -> Questions {
    let ready = config.workloads.iter().filter_map(|workload| ready_of(workload, vm)).collect();
    let checks = config.workloads.iter().filter_map(|workload| checks_of(workload, vm)).collect();
    Questions { surroundings: hook_commands::surroundings(), roles: roles(config), ready, checks }
}

/// The role sources of this VM's workloads.
fn roles(config: &Config) -> Vec<PolledRole> {
    let told = |workload: &config::ConfiguredWorkload| {
        let role = workload.role.as_ref()?;
        let config::CommandSettings { user, env } = role.settings.clone();
        let source = match &role.source {
            config::ConfiguredRoleSource::Command(argv) => {
                RoleSource::Command(hook_commands::with_settings(argv.clone(), user, env))
            }
            config::ConfiguredRoleSource::Http(http) => {
                RoleSource::Http { url: http.url.clone(), options: http.options.clone() }
            }
        };
        let (workload, group) = (workload.name.clone(), workload.group.clone());
        Some(PolledRole { workload, group, source, every: role.every })
    };
    config.workloads.iter().filter_map(told).collect()
}

fn ready_of(workload: &config::ConfiguredWorkload, vm: &VmName) -> Option<ReadinessProbe> {
    let every = workload.ready_interval?;
    Some(ReadinessProbe { owner: owner_of(workload, vm), hooks: probes(workload, Phase::Ready, every), every })
}

fn checks_of(workload: &config::ConfiguredWorkload, vm: &VmName) -> Option<CheckProbe> {
    let every = workload.check_interval?;
    Some(CheckProbe { owner: owner_of(workload, vm), hooks: probes(workload, Phase::Check, every), every })
}

/// The hooks of the phase. An answer later than the next query counts as none.
fn probes(workload: &config::ConfiguredWorkload, phase: Phase, every: Duration) -> Vec<ProbeHook> {
    let hooks = workload.hooks.iter().filter(|hook| hook.registered.phase == phase);
    let probe = |hook: &config::ConfiguredHook| ProbeHook {
        phase,
        command: hook_commands::command(&hook.run, hook),
        timeout: hook.registered.timeout.min(every),
    };
    hooks.map(probe).collect()
}

fn owner_of(workload: &config::ConfiguredWorkload, vm: &VmName) -> Owner {
    Owner { workload: workload.name.clone(), group: workload.group.clone(), vm: vm.clone() }
}
