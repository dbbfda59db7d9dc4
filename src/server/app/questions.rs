//! From the configuration to what this VM's workloads are asked.

use super::calls;
use crate::config::{self, Config};
use crate::hooks::{Command, Owner, ReadyHook, RoleSource};
use crate::replica::Questions;
use crate::replica::readiness::Asked;
use crate::replica::roles::Told;
use allclear_core::model::id::VmName;
use allclear_core::model::workload::Phase;

/// Everything that is asked whatever goes on.
pub(super) fn all(config: &Config, vm: &VmName) -> Questions {
    let ready = config.workloads.iter().filter_map(|workload| ready_of(workload, vm));
    Questions { surroundings: calls::surroundings(), roles: roles(config), ready: ready.collect() }
}

/// Who is asked for the roles of this VM's workloads, with the rights that the workload's hooks have.
fn roles(config: &Config) -> Vec<Told> {
    let told = |workload: &config::Workload| {
        let role = workload.role.as_ref()?;
        let user = workload.hooks.iter().find_map(|hook| hook.user.clone());
        let source = match &role.source {
            config::RoleSource::Command(argv) => {
                RoleSource::Command(Command { argv: argv.clone(), user, ..Command::default() })
            }
            config::RoleSource::Http(http) => RoleSource::Http { url: http.url.clone(), options: http.options.clone() },
        };
        let (workload, group) = (workload.name.clone(), workload.group.clone());
        Some(Told { workload, group, source, every: role.every })
    };
    config.workloads.iter().filter_map(told).collect()
}

fn ready_of(workload: &config::Workload, vm: &VmName) -> Option<Asked> {
    let every = workload.ready_interval?;
    let hooks = workload.hooks.iter().filter(|hook| hook.registered.phase == Phase::Ready);
    // An answer that takes as long as the next question is away is none.
    let hook = |hook: &config::Hook| ReadyHook {
        command: calls::command(&hook.run, hook),
        timeout: hook.registered.timeout.min(every),
    };
    let owner = Owner { workload: workload.name.clone(), group: workload.group.clone(), vm: vm.clone() };
    Some(Asked { owner, hooks: hooks.map(hook).collect(), every })
}
