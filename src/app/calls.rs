//! From the configuration to how hooks are run.

use crate::config::{self, Config, Way};
use crate::machine::workload::Phase;
use crate::replica::hooks::{Calls, Configured};
use crate::workloads::{Adapter, Command, Surroundings};

/// How each hook of this VM is reached.
pub(super) fn of(config: &Config) -> Configured {
    let mut configured = Configured::new();
    for workload in &config.workloads {
        let registered = workload.registered();
        for phase in Phase::ALL {
            let hooks = workload.hooks.iter().filter(|hook| hook.phase == phase);
            for ((id, _), hook) in registered.hooks_of(phase).zip(hooks) {
                let of = |way: &Way| command(way, hook);
                let calls = Calls {
                    run: of(&hook.run),
                    confirm: hook.confirm.as_ref().map(of),
                    undo: hook.undo.as_ref().map(of),
                };
                configured.insert((workload.name.clone(), id), calls);
            }
        }
    }
    configured
}

fn command(way: &Way, hook: &config::Hook) -> Command {
    let argv = match way {
        Way::Command(argv) => argv.clone(),
        Way::Http(url) => Adapter::None.command(url),
        Way::Patroni(url) => Adapter::Patroni.command(url),
    };
    Command { argv, env: hook.env.iter().cloned().collect(), user: hook.user.clone() }
}

/// What hooks see of this replica's own environment.
pub(super) fn surroundings() -> Surroundings {
    let mut surroundings = Surroundings::default();
    for (name, value) in config::environment() {
        match name.as_str() {
            "PATH" => surroundings.path = value,
            "HOME" => surroundings.home = value,
            "LANG" => surroundings.lang = value,
            _ => {}
        }
    }
    surroundings
}
