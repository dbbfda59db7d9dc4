//! Converts configured hooks to hook commands.

use crate::config::{self, Config, HookTarget, Http};
use crate::hooks::{Adapter, HookCommand, HookEnvironment, HttpHook};
use crate::replica::hook_executor::{Configured, HookCalls};
use allclear_core::model::workload::Phase;

/// The commands of each hook of this VM.
pub(super) fn of(config: &Config) -> Configured {
    let mut configured = Configured::new();
    for workload in &config.workloads {
        let registered = workload.registered();
        for phase in Phase::ALL {
            let hooks = workload.hooks.iter().filter(|hook| hook.registered.phase == phase);
            for ((id, _), hook) in registered.hooks_of(phase).zip(hooks) {
                let hook_command = |way: &HookTarget| command(way, hook);
                let calls = HookCalls {
                    run: hook_command(&hook.run),
                    confirm: hook.confirm.as_ref().map(hook_command),
                    undo: hook.undo.as_ref().map(hook_command),
                };
                configured.insert((workload.name.clone(), id), calls);
            }
        }
    }
    configured
}

pub fn command(way: &HookTarget, hook: &config::ConfiguredHook) -> HookCommand {
    let argv = match way {
        HookTarget::Command(argv) => argv.clone(),
        HookTarget::Http(http) => over_http(Adapter::None, http, &[]),
        HookTarget::Patroni { api, members } => over_http(Adapter::Patroni, api, members),
    };
    with_settings(argv, hook.user.clone(), hook.env.clone())
}

/// A command with its user and its variables.
pub(super) fn with_settings(argv: Vec<String>, user: Option<String>, env: config::Env) -> HookCommand {
    let config::Env { written, shown, files } = env;
    let (env, env_files) = (written.into_iter().collect(), files.into_iter().collect());
    HookCommand { argv, env, shown, env_files, user }
}

fn over_http(adapter: Adapter, http: &Http, members: &[(String, String)]) -> Vec<String> {
    let Http { url, options } = http.clone();
    HttpHook { adapter, url, options, members: members.to_vec() }.command()
}

/// Prefixes of the loader's variables, and of a clock library that the loader loads.
const LOADED: [&str; 2] = ["LD_", "FAKETIME"];

/// The part of this replica's environment that hooks and their supervisors receive.
pub fn surroundings() -> HookEnvironment {
    let mut surroundings = HookEnvironment::default();
    for (name, value) in config::environment() {
        match name.as_str() {
            "PATH" => surroundings.path = whole_paths(&value).unwrap_or(surroundings.path),
            "HOME" => surroundings.home = value,
            "LANG" => surroundings.lang = value,
            loaded if LOADED.iter().any(|prefix| loaded.starts_with(prefix)) => {
                surroundings.loaded.insert(name, value);
            }
            _ => {}
        }
    }
    surroundings
}

/// Keeps absolute folders only; a relative folder would depend on the hook's working directory.
fn whole_paths(path: &str) -> Option<String> {
    let whole: Vec<_> = path.split(':').filter(|folder| folder.starts_with('/')).collect();
    (!whole.is_empty()).then(|| whole.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_looked_for_in_whole_paths_alone() {
        assert_eq!(whole_paths("bin::/usr/bin:.:/bin").as_deref(), Some("/usr/bin:/bin"));
        assert_eq!(whole_paths(".:"), None);
    }
}
