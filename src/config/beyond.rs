//! What a configuration may ask for and this version does not do: the one list of it. Whoever builds one of these
//! takes its line out.
//!
//! Where the replica would do something else than was asked for, the key is refused as a mistake. Where it only does
//! less, the key is ignored, and whoever wrote it is told. A key that nobody wrote asks for nothing.

use super::Config;

/// Refused: `cluster.tls`.
pub(super) const TLS: &str = "`cluster.tls` is refused: this version cannot encrypt; remove it and set \
                              `cluster.insecure = true` on a network that nobody else can reach";

/// Refused: `http` of a hook and of a role, an address as `confirm` or `undo`.
pub(super) const HTTP: &str = "hooks over HTTP cannot be run by this version";

impl Config {
    /// What is written and ignored, one line for each key with what is done without it.
    pub fn beyond_this_version(&self) -> Vec<String> {
        let mut ignored = Vec::new();
        let mut tell = |written: bool, key: &str, instead: &str| {
            if written {
                ignored.push(format!("{key} is ignored by this version: {instead}"));
            }
        };
        for workload in &self.workloads {
            let key = format!("`workload.role` of {}", workload.name);
            tell(workload.role.is_some(), &key, "every workload counts as primary");
            for hook in &workload.hooks {
                let of = format!("of the {} hook of {}", hook.phase, workload.name);
                let instead = "when the event is cancelled, only `restore` follows";
                tell(hook.undo.is_some(), &format!("`workload.hook.undo` {of}"), instead);
                let instead = "the hook is run however short the notice is";
                tell(hook.optional_if_short, &format!("`workload.hook.optional_if_short` {of}"), instead);
            }
        }
        ignored
    }
}
