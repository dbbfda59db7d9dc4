//! Allowed imports between modules of the replica's crates, and the modules of each foreign crate. Between crates, Cargo
//! checks the dependencies. The tables are the architecture's.

use super::source::Source;

/// A module, and the modules it may import. `app` wires all of them.
const MODULES: &[(&str, &[&str])] = &[
    ("files", &[]),
    ("net", &["files"]),
    ("signals", &[]),
    // messages for people contain no terminal control characters
    ("exit", &["replica"]),
    ("consensus", &["net", "files"]),
    ("secrets", &["files"]),
    ("http_client", &["files", "secrets"]),
    ("imds", &["http_client"]),
    ("control_plane", &["http_client", "imds"]),
    ("hooks", &["http_client", "files", "secrets"]),
    ("replica", &["net", "consensus", "imds", "control_plane", "hooks"]),
    ("grpc", &["net", "replica", "hooks", "files"]),
    ("http", &["net", "replica"]),
    ("export", &["http_client", "replica", "secrets"]),
    // these modules know the versions of the service, the identity in a certificate, the allowed content for each
    // receiver, the allowed targets of requests, and the minimum length of a secret
    ("config", &["imds", "control_plane", "net", "http_client", "export", "secrets"]),
    ("app", ALL),
    ("lib", ALL),
];

const ALL: &[&str] = &[
    "net",
    "consensus",
    "imds",
    "control_plane",
    "hooks",
    "replica",
    "grpc",
    "http",
    "export",
    "files",
    "secrets",
    "signals",
    "exit",
    "http_client",
    "config",
    "app",
];

/// The modules of the core, in the order of the architecture: a module imports from its own row and from rows above.
const CORE: &[&[&str]] = &[
    &["model"],
    &["policy", "planning_input", "ownership", "disk_loss"],
    &["schedule"],
    &["apply"],
    &["isolation"],
    &["plan", "assignments", "leadership"],
    &["procedure"],
    &["explain", "known_roles", "notification", "start_cause", "timings"],
    &[
        "observation",
        "report_limits",
        "allowance",
        "peer_table",
        "cluster_time",
        "platform_time",
        "impact",
        "readiness",
        "version",
    ],
    &["verify"],
];

/// A foreign crate or a module of a foreign crate, and the modules that may use the crate.
const FOREIGN: &[(&str, &[&str])] = &[
    ("openraft", &["consensus"]),
    ("openraft_macros", &["consensus"]),
    ("openraft_rt", &["consensus"]),
    ("openraft_rt_tokio", &["consensus"]),
    ("redb", &["consensus"]),
    ("prost", &["consensus", "export"]),
    ("reqwest", &["http_client", "imds"]),
    ("tonic", &["grpc", "consensus", "net"]),
    ("rustls", &["net", "http_client"]),
    ("tokio_rustls", &["net"]),
    ("webpki", &["net"]),
    ("rcgen", &["net"]),
    ("percent_encoding", &["net"]),
    ("hyper", &["net"]),
    ("hyper_util", &["net"]),
    ("tower", &["net"]),
    ("socket2", &["net"]),
    ("tokio::process", &["hooks"]),
    ("nix", &["hooks", "grpc", "files"]),
    ("axum", &["http", "grpc", "net"]),
    ("toml", &["config"]),
    ("prometheus", &["replica", "http"]),
    ("tracing_subscriber", &["http"]),
    ("sd_notify", &["app"]),
    ("http_body_util", &["net"]),
    ("rustls_native_certs", &["http_client"]),
    ("ring", &["export", "replica"]),
    ("anyhow", &["app", "net"]),
];

pub(super) fn between_modules(source: &Source) -> Vec<(usize, String)> {
    let Some(module) = source.module() else { return Vec::new() };
    let Some((_, allowed)) = MODULES.iter().find(|(name, _)| *name == module) else {
        return vec![(1, format!("`{module}` is in no row of MODULES: give it one"))];
    };
    let mut findings = Vec::new();
    for (line, path) in source.paths() {
        let Some(other) = entered(source, &path) else { continue };
        if other != module && ALL.contains(&other) && !allowed.contains(&other) {
            findings.push((line, format!("{module} may not import {other}")));
        }
    }
    findings
}

pub(super) fn within_core(source: &Source) -> Vec<(usize, String)> {
    let row = |module: &str| CORE.iter().position(|row| row.contains(&module));
    let Some(module) = source.module_in("src/core/").filter(|module| !["lib", "string_enum"].contains(module)) else {
        return Vec::new();
    };
    let Some(own) = row(module) else { return vec![(1, format!("`{module}` is in no row of CORE: give it one"))] };
    let mut findings = Vec::new();
    for (line, path) in source.paths() {
        let Some(other) = entered(source, &path) else { continue };
        // `apply` asserts the invariants of `verify` in debug builds.
        if row(other).is_some_and(|other| other > own) && (module, other) != ("apply", "verify") {
            findings.push((line, format!("{module} may not import {other}, which is further down")));
        }
    }
    findings
}

/// The module that a path enters: the segment after the root of the own crate, or of a crate of the replica.
fn entered<'p>(source: &Source, path: &'p [String]) -> Option<&'p str> {
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let is_root = ["crate", "allclear_cluster", "allclear_effects"].contains(&path.first()?.as_str());
    let next = if is_root {
        1
    } else if ups > 0 && ups >= source.depth() {
        ups
    } else {
        return None;
    };
    path.get(next).map(String::as_str)
}

pub(super) fn to_foreign_crates(source: &Source) -> Vec<(usize, String)> {
    let Some(module) = source.module() else { return Vec::new() };
    let mut findings = Vec::new();
    for (line, path) in source.paths() {
        let path = path.join("::");
        let is_it = |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        for (name, modules) in FOREIGN.iter().filter(|(name, modules)| is_it(name) && !modules.contains(&module)) {
            findings.push((line, format!("{name} lives only in {}", modules.join(", "))));
        }
    }
    findings
}

#[test]
fn a_door_that_is_not_there_is_found() {
    let bad = [
        ("src/cluster/net/dial/a.rs", "use crate::config::Config;"),
        ("src/server/http/page/mod.rs", "use crate::{replica::View, consensus::Log};"),
        ("src/server/http/page/mod.rs", "use super::super::consensus::Log;"),
        ("src/effects/imds/mod.rs", "use super::config;"),
        ("src/effects/imds/poll.rs", "fn f() -> crate::config::Config {}"),
        ("src/server/http/page/mod.rs", "use allclear_cluster::consensus::Log;"),
        ("src/server/grpc/a.rs", "fn f() -> allclear_effects::imds::Approval {}"),
        ("src/server/attic/a.rs", ""),
    ];
    for (path, text) in bad {
        assert_eq!(between_modules(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
    let good = [
        (
            "src/server/http/page/mod.rs",
            "use crate::replica::View; use super::super::net::tls::Caller; use super::config;",
        ),
        ("src/effects/imds/mod.rs", "// crate::config is not for us\n#[cfg(test)]\nmod tests { use crate::config; }"),
        ("src/server/app.rs", "use crate::{replica, config::{self, Config}};"),
        ("src/cli/run.rs", "use crate::config;"),
    ];
    for (path, text) in good {
        assert_eq!(between_modules(&Source::new(path, text)), [], "{path}: {text}");
    }
}

#[test]
fn an_import_down_the_core_is_found() {
    let findings = |path: &str, text: &str| within_core(&Source::new(path, text)).len();
    assert_eq!(findings("src/core/model/slot.rs", "use crate::schedule::slots;"), 1);
    assert_eq!(findings("src/core/schedule/slots.rs", "fn f() { super::super::plan::plan(); }"), 1);
    assert_eq!(findings("src/core/attic.rs", ""), 1);
    assert_eq!(findings("src/core/plan/mod.rs", "use crate::{schedule::slots, model::slot, assignments};"), 0);
    assert_eq!(findings("src/core/apply/mod.rs", "use crate::verify;"), 0);
    assert_eq!(findings("src/server/replica/mod.rs", "use crate::schedule;"), 0);
}

#[test]
fn a_foreign_crate_in_the_wrong_module_is_found() {
    let bad = [
        ("src/server/replica/a.rs", "use openraft::Raft;"),
        ("src/server/replica/a.rs", "use tokio::{fs, process::{Child, Command}};"),
        ("src/server/http/a.rs", "fn f() -> toml::Value {}"),
        ("src/server/http/a.rs", "use ::tonic as grpc;"),
    ];
    for (path, text) in bad {
        assert!(!to_foreign_crates(&Source::new(path, text)).is_empty(), "{path}: {text}");
    }
    let good = [
        ("src/server/config/a.rs", "use toml::Value;"),
        ("src/server/grpc/a.rs", "use crate::toml::x; use tokio::fs; std::process::id();"),
        ("src/cli/a.rs", "use openraft::Raft;"),
    ];
    for (path, text) in good {
        assert_eq!(to_foreign_crates(&Source::new(path, text)), [], "{path}: {text}");
    }
}
