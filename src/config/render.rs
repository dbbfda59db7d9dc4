//! Prints a configuration as the file that says the same without any default: what `allclear check` shows.
//! Reading it again gives the same configuration, but for secrets that stand in the environment of a hook.

#![expect(clippy::unnecessary_wraps, reason = "a line's value may be missing, so whoever writes one gives an `Option`")]

mod outlet;

use core::fmt;
use core::time::Duration;
use std::path::Path;

use super::secret::is_secret;
use super::{Cluster, Config, Hook, Metadata, Operator, Registration, Replica, RoleSource, Status, Tls, Way, Workload};
use crate::machine::policy::{Policy, Range, Rule};
use crate::machine::workload::Group;

const NOT_SHOWN: &str = "(not shown)";

/// A table's keys with their values in TOML, in the order of the contract; what is not set is not printed.
type Lines = Vec<(&'static str, Option<String>)>;

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            replica,
            cluster,
            metadata,
            status,
            operator,
            registration,
            tracing,
            policy,
            groups,
            workloads,
            receivers,
        } = self;
        table(f, "[replica]", replica_lines(replica))?;
        table(f, "\n[cluster]", cluster_lines(cluster))?;
        if let Some(tls) = &cluster.tls {
            table(f, "\n[cluster.tls]", tls_lines(tls))?;
        }
        table(f, "\n[metadata]", metadata_lines(metadata))?;
        let Status { listen, host_names } = status;
        let names = list(host_names.iter().map(quoted));
        table(f, "\n[status]", vec![("listen", text(listen)), ("host_names", names)])?;
        let Operator { socket } = operator;
        table(f, "\n[operator]", vec![("socket", path(socket))])?;
        table(f, "\n[workloads]", registration_lines(registration))?;
        if let Some(tracing) = tracing {
            table(f, "\n[tracing]", outlet::tracing_lines(tracing))?;
        }
        table(f, "\n[policy]", policy_lines(policy))?;
        for rule in &policy.rules {
            table(f, "\n[[policy.rule]]", rule_lines(rule))?;
        }
        for Group { name, max_unavailable } in groups {
            table(f, "\n[[group]]", vec![("name", text(name)), ("max_unavailable", plain(max_unavailable))])?;
        }
        for workload in workloads {
            table(f, "\n[[workload]]", workload_lines(workload))?;
            for hook in &workload.hooks {
                table(f, "\n[[workload.hook]]", hook_lines(hook))?;
            }
        }
        for receiver in receivers {
            table(f, "\n[[notify]]", outlet::receiver_lines(receiver))?;
        }
        Ok(())
    }
}

fn table(f: &mut fmt::Formatter<'_>, header: &str, lines: Lines) -> fmt::Result {
    writeln!(f, "{header}")?;
    for (key, value) in lines {
        if let Some(value) = value {
            writeln!(f, "{key} = {value}")?;
        }
    }
    Ok(())
}

fn replica_lines(replica: &Replica) -> Lines {
    let Replica { name, data_dir } = replica;
    vec![("name", name.as_ref().and_then(text)), ("data_dir", path(data_dir))]
}

fn cluster_lines(cluster: &Cluster) -> Lines {
    let Cluster {
        name,
        listen,
        replicas,
        takeover_after,
        heartbeat,
        election_timeout,
        claim_lease,
        max_voters,
        replace_after,
        insecure,
        tls: _,
    } = cluster;
    let peers = replicas.iter().map(|peer| format!("{} = {}", quoted(&peer.name), quoted(&peer.address)));
    vec![
        ("name", text(name)),
        ("listen", listen.as_ref().and_then(text)),
        ("replicas", inline_table(peers)),
        ("takeover_after", span(*takeover_after)),
        ("heartbeat", span(*heartbeat)),
        ("election_timeout", span(*election_timeout)),
        ("claim_lease", span(*claim_lease)),
        ("max_voters", plain(max_voters)),
        ("replace_after", span(*replace_after)),
        ("insecure", plain(insecure)),
    ]
}

fn tls_lines(tls: &Tls) -> Lines {
    let Tls { cert, key, ca, names, max_connection_age } = tls;
    vec![
        ("cert", path(cert)),
        ("key", path(key)),
        ("ca", path(ca)),
        ("names", text(names.as_word())),
        ("max_connection_age", span(*max_connection_age)),
    ]
}

fn metadata_lines(metadata: &Metadata) -> Lines {
    let Metadata { endpoint, api_version, poll_interval, stall_after, stale_after, forget_after } = metadata;
    vec![
        ("endpoint", endpoint.as_ref().and_then(text)),
        ("discover", endpoint.is_none().then(|| quoted("dhcp"))),
        ("api_version", text(api_version.to_string())),
        ("poll_interval", span(*poll_interval)),
        ("stall_after", span(*stall_after)),
        ("stale_after", span(*stale_after)),
        ("forget_after", span(*forget_after)),
    ]
}

/// The usual path is not printed: written, it would have to be usable.
fn registration_lines(registration: &Registration) -> Lines {
    let Registration { socket, allow_uids } = registration;
    let uids = bracketed(allow_uids.iter().map(u32::to_string));
    vec![("socket", socket.as_deref().and_then(path)), ("allow_uids", Some(uids))]
}

fn policy_lines(policy: &Policy) -> Lines {
    let Policy { user_budget, brief_freeze, foreign, margin, prepare_ahead, restore_timeout, rules: _ } = policy;
    vec![
        ("user_budget", span(*user_budget)),
        ("brief_freeze", span(*brief_freeze)),
        ("foreign", text(foreign.as_word())),
        ("margin", span(*margin)),
        ("prepare_ahead", span(*prepare_ahead)),
        ("restore_timeout", span(*restore_timeout)),
    ]
}

fn rule_lines(rule: &Rule) -> Lines {
    let Rule { name, kinds, sources, resources, duration, notice, action, phases, budget } = rule;
    let range = |range: &Option<Range>| {
        let Range { at_least, below } = (*range)?;
        let at_least = at_least.and_then(span).map(|bound| format!("at_least = {bound}"));
        let below = below.and_then(span).map(|bound| format!("below = {bound}"));
        inline_table(at_least.into_iter().chain(below))
    };
    vec![
        ("name", text(name)),
        ("type", list(kinds.iter().map(quoted))),
        ("source", list(sources.iter().map(quoted))),
        ("duration", range(duration)),
        ("notice", range(notice)),
        ("resources", list(resources.iter().map(quoted))),
        ("treatment", text(action.as_word())),
        ("phases", phases.as_ref().and_then(|phases| list(phases.iter().map(quoted)))),
        ("budget", budget.and_then(span)),
    ]
}

fn workload_lines(workload: &Workload) -> Lines {
    let Workload { name, group, after, role, hooks: _ } = workload;
    let source = role.as_ref().map(|role| match &role.source {
        RoleSource::Command(command) => format!("{{ command = {} }}", argv(command)),
        RoleSource::Http(address) => format!("{{ http = {} }}", quoted(address)),
    });
    vec![
        ("name", text(name)),
        ("group", group.as_ref().and_then(text)),
        ("after", list(after.iter().map(quoted))),
        ("role", source),
        ("role_every", role.as_ref().and_then(|role| span(role.every))),
    ]
}

fn hook_lines(hook: &Hook) -> Lines {
    let Hook {
        phase,
        run,
        timeout,
        attempts,
        on_failure,
        runs_on,
        confirm,
        undo,
        dry_run,
        min_freeze,
        fresh_for,
        optional_if_short,
        worst,
        exclusive,
        kinds,
        user,
        env,
    } = hook;
    let (reached, address, adapter) = match run {
        Way::Command(parts) => ("command", argv(parts), None),
        Way::Http(url) => ("http", quoted(url), None),
        Way::Patroni(url) => ("http", quoted(url), Some("patroni")),
    };
    let shown = |name: &str, value: &str| quoted(if is_secret(name, value) { NOT_SHOWN } else { value });
    let variables = env.iter().map(|(name, value)| format!("{} = {}", quoted(name), shown(name, value)));
    vec![
        ("phase", text(phase)),
        (reached, Some(address)),
        ("adapter", adapter.map(quoted)),
        ("timeout", span(*timeout)),
        ("attempts", plain(attempts)),
        ("on_failure", text(on_failure)),
        ("runs_on", text(runs_on)),
        ("confirm", confirm.as_ref().and_then(way)),
        ("undo", undo.as_ref().and_then(way)),
        ("dry_run", plain(dry_run)),
        ("min_freeze", min_freeze.and_then(span)),
        ("fresh_for", fresh_for.and_then(span)),
        ("optional_if_short", plain(optional_if_short)),
        ("worst", worst.and_then(span)),
        ("exclusive", plain(exclusive)),
        ("type", list(kinds.iter().map(quoted))),
        ("user", user.as_ref().and_then(text)),
        ("env", inline_table(variables)),
    ]
}

/// What an adapter adds is not written.
fn way(way: &Way) -> Option<String> {
    match way {
        Way::Command(parts) => Some(argv(parts)),
        Way::Http(url) => Some(format!("{{ http = {} }}", quoted(url))),
        Way::Patroni(_) => None,
    }
}

fn argv(parts: &[String]) -> String {
    bracketed(parts.iter().map(quoted))
}

fn quoted(value: impl fmt::Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

fn bracketed(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

fn text(value: impl fmt::Display) -> Option<String> {
    Some(quoted(value))
}

fn plain(value: impl fmt::Display) -> Option<String> {
    Some(value.to_string())
}

fn path(value: &Path) -> Option<String> {
    text(value.display())
}

fn span(value: Duration) -> Option<String> {
    text(humantime::format_duration(value))
}

/// Empty is what leaving it out means.
fn list(values: impl Iterator<Item = String>) -> Option<String> {
    Some(bracketed(values)).filter(|text| text != "[]")
}

/// Empty is what leaving it out means.
fn inline_table(entries: impl Iterator<Item = String>) -> Option<String> {
    let entries = entries.collect::<Vec<_>>().join(", ");
    if entries.is_empty() { None } else { Some(format!("{{ {entries} }}")) }
}
