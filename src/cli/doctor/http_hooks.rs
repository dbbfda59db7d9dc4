//! Whether the addresses, certificates and secrets of hooks and roles over HTTP can be used. Nothing is sent.

use std::collections::BTreeMap;

use nix::unistd::{AccessFlags, User};

use super::finding::Finding;
use super::programs::may;
use allclear_core::model::id::VmName;
use allclear_server::config::{self, Config, ConfiguredRoleSource, HookTarget, Http};
use allclear_server::files;
use allclear_server::http_client::{HttpClient, parse_external};

const CHECK: &str = "http";

/// An HTTP request, the hook or role with this request, and the user that reads the files of the request.
struct HttpCheck<'a> {
    by: String,
    http: &'a Http,
    user: Option<&'a str>,
}

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for asked in config.workloads.iter().flat_map(of_workload) {
        findings.extend(tried(&asked).await);
    }
    findings.extend(strange_vms(config).into_values());
    findings
}

/// VMs of Patroni's members without a replica in this configuration. Replicas may have been added since, so this is
/// no failure.
fn strange_vms(config: &Config) -> BTreeMap<&str, Finding> {
    let known: Vec<VmName> = config.cluster.replicas.iter().map(|peer| peer.name.clone()).collect();
    let hooks = config.workloads.iter().flat_map(|workload| &workload.hooks);
    let members = hooks.filter_map(|hook| match &hook.run {
        HookTarget::Patroni { members, .. } => Some(members),
        HookTarget::Command(_) | HookTarget::Http(_) => None,
    });
    let strange = members.flatten().filter(|(_, vm)| !known.is_empty() && !known.contains(&VmName::new(vm)));
    let finding = |member: &str, vm: &str| {
        let what = format!("`members` has {member} on {vm}, which is not among `cluster.replicas`");
        Finding::warn(CHECK, what, "correct the name of the VM, or accept that no replica runs on this VM")
    };
    strange.map(|(member, vm)| (member.as_str(), finding(member, vm))).collect()
}

fn of_workload(workload: &config::ConfiguredWorkload) -> Vec<HttpCheck<'_>> {
    let mut all = Vec::new();
    if let Some(ConfiguredRoleSource::Http(http)) = workload.role.as_ref().map(|role| &role.source) {
        all.push(HttpCheck { by: format!("{}.role", workload.name), http, user: None });
    }
    for hook in &workload.hooks {
        for way in [Some(&hook.run), hook.confirm.as_ref(), hook.undo.as_ref()].into_iter().flatten() {
            let (HookTarget::Http(http) | HookTarget::Patroni { api: http, .. }) = way else { continue };
            let by = format!("{}.{}", workload.name, hook.registered.phase);
            // A failover of Patroni is also its own `confirm`.
            if all.iter().all(|known: &HttpCheck<'_>| known.by != by || known.http != http) {
                all.push(HttpCheck { by, http, user: hook.user.as_deref() });
            }
        }
    }
    all
}

async fn tried(asked: &HttpCheck<'_>) -> Vec<Finding> {
    let HttpCheck { by, http: Http { url, options }, user } = asked;
    let wrong = match parse_external(url) {
        Ok(url) => HttpClient::for_user(&url, options, uid_of(*user)).await.err(),
        Err(why) => Some(format!("the address {why}")),
    };
    if let Some(wrong) = wrong {
        let advice = "repair the fault, or correct the configuration; until then no request can be sent";
        return vec![Finding::fail(CHECK, format!("{by}: {wrong}"), advice)];
    }
    let (secret, open) = options.files();
    let mut findings = Vec::new();
    for file in secret.iter().chain(&open).filter(|file| !may(file, *user, AccessFlags::R_OK, 0o4)) {
        let (what, user) = (format!("{by}: {}", file.display()), user.unwrap_or_default());
        let advice = format!("give the file to {user}, or to a group of {user}");
        findings.push(Finding::fail(CHECK, format!("{what} may not be read by {user}, the user of the hook"), advice));
    }
    if findings.is_empty() {
        findings
            .push(Finding::ok(CHECK, format!("{by}: address, secrets and certificates can be used; nothing was sent")));
    }
    findings
}

/// The user id with which the files are read.
fn uid_of(user: Option<&str>) -> u32 {
    let known = user.and_then(|name| User::from_name(name).ok().flatten());
    known.map_or_else(files::own_uid, |user| user.uid.as_raw())
}
