//! Whether the files of hooks' variables can be read.

use std::collections::BTreeMap;
use std::path::Path;

use super::finding::Finding;
use allclear_server::config::Config;
use allclear_server::secrets::{self, Secrets};

const CHECK: &str = "hook";

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let mut files: BTreeMap<&Path, String> = BTreeMap::new();
    for workload in &config.workloads {
        for (name, file) in workload.role.iter().flat_map(|role| &role.settings.env.files) {
            files.entry(file).or_insert_with(|| format!("{name} of {}.role", workload.name));
        }
        for hook in &workload.hooks {
            for (name, file) in &hook.env.files {
                files.entry(file).or_insert_with(|| format!("{name} of {}.{}", workload.name, hook.registered.phase));
            }
        }
    }
    let mut findings = Vec::new();
    for (file, variable) in files {
        findings.push(match secrets::read(file).await {
            Err(why) => Finding::fail(CHECK, format!("{variable}: {why}"), "until then the hook is not started"),
            Ok(secret) if Secrets::is_too_short(&secret) => {
                let what = format!("{variable} is too short to be cut out of the hook's output");
                Finding::warn(CHECK, what, format!("write a longer secret into {}", file.display()))
            }
            Ok(_) => Finding::ok(CHECK, format!("{variable}: {} can be read", file.display())),
        });
    }
    findings
}
