//! From the configuration to who is asked for roles.

use crate::config::{self, Config};
use crate::replica::roles::Told;
use crate::workloads::{Command, RoleSource};

/// Who is asked for the roles of this VM's workloads, with the rights that the workload's hooks have.
pub(super) fn of(config: &Config) -> Vec<Told> {
    let told = |workload: &config::Workload| {
        let role = workload.role.as_ref()?;
        let user = workload.hooks.iter().find_map(|hook| hook.user.clone());
        let source = match &role.source {
            config::RoleSource::Command(argv) => {
                RoleSource::Command(Command { argv: argv.clone(), user, ..Command::default() })
            }
            config::RoleSource::Http(address) => RoleSource::Http(address.clone()),
        };
        let (workload, group) = (workload.name.clone(), workload.group.clone());
        Some(Told { workload, group, source, every: role.every })
    };
    config.workloads.iter().filter_map(told).collect()
}
