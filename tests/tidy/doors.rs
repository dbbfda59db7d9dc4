//! Which room may import which room, and which foreign crate lives where. The tables are the architecture's.

use super::source::Source;

/// A room, and the rooms it may import. `app` wires all of them, and `cli` takes what its commands need.
const ROOMS: &[(&str, &[&str])] = &[
    ("machine", &[]),
    ("simulator", &["machine"]),
    ("wire", &["machine"]),
    ("admission", &[]),
    ("reach", &[]),
    ("files", &[]),
    ("tls", &["machine", "admission", "reach", "files"]),
    ("consensus", &["machine", "wire", "reach", "tls", "admission", "files"]),
    ("secrets", &["files"]),
    ("http_client", &["files", "secrets"]),
    ("metadata", &["machine", "http_client"]),
    // embedded by databases, so it stands on what goes over the wire alone
    ("workload", &["wire"]),
    ("workloads", &["machine", "wire", "http_client", "files", "secrets"]),
    // what it proposes and what it shows are messages
    ("replica", &["machine", "wire", "tls", "admission", "consensus", "metadata", "workloads"]),
    ("rpc", &["machine", "wire", "reach", "tls", "admission", "replica", "workloads", "files"]),
    ("ops", &["machine", "tls", "admission", "replica"]),
    ("outlet", &["machine", "wire", "http_client", "replica", "secrets"]),
    // it serves the same protocol as the status port
    ("fake_cloud", &["machine", "simulator", "admission"]),
    // which versions of the service there are, by what a certificate can be known, who may be told what, and where
    // requests may go, is known there
    // what is too short to be kept secret, is known there
    ("config", &["machine", "metadata", "tls", "http_client", "outlet", "secrets"]),
    // which programs the PATH has, is known there
    ("databases", &["config"]),
    ("app", ALL),
    ("cli", ALL),
    ("lib", ALL),
    ("main", &["cli"]),
];

const ALL: &[&str] = &[
    "machine",
    "simulator",
    "admission",
    "tls",
    "wire",
    "consensus",
    "metadata",
    "workload",
    "workloads",
    "replica",
    "rpc",
    "ops",
    "outlet",
    "reach",
    "files",
    "secrets",
    "http_client",
    "fake_cloud",
    "config",
    "databases",
    "app",
    "cli",
];

/// A foreign crate or a module of one, and the rooms it lives in.
const FOREIGN: &[(&str, &[&str])] = &[
    ("openraft", &["consensus"]),
    ("openraft_macros", &["consensus"]),
    ("openraft_rt", &["consensus"]),
    ("openraft_rt_tokio", &["consensus"]),
    ("redb", &["consensus"]),
    // the second stores and sends the wire's messages, the third sends those of another protocol
    ("prost", &["wire", "consensus", "outlet"]),
    // the second has a client of its own
    ("reqwest", &["http_client", "metadata"]),
    // the second for the transport between replicas, the third dials a replica's workload, the next two a replica,
    // the last bounds what its servers take
    ("tonic", &["rpc", "consensus", "workload", "tls", "reach", "admission"]),
    ("rustls", &["tls", "http_client"]),
    ("tokio_rustls", &["tls"]),
    ("webpki", &["tls"]),
    ("rcgen", &["tls"]),
    ("percent_encoding", &["tls"]),
    ("hyper", &["admission"]),
    ("hyper_util", &["tls", "reach", "admission"]),
    ("tower", &["tls", "reach", "admission"]),
    ("socket2", &["reach"]),
    // hooks, and the replicas of a demo
    ("tokio::process", &["workloads", "cli"]),
    // the fourth for sockets and their users
    ("nix", &["workloads", "cli", "databases", "rpc", "files"]),
    // the last two for what stands before every call, which tonic's routes take in no other way
    ("axum", &["ops", "fake_cloud", "rpc", "admission"]),
    // the second for scenarios, the third for the tables of hook sets
    ("toml", &["config", "fake_cloud", "databases"]),
    // counted where it happens, told over HTTP
    ("prometheus", &["replica", "ops"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("terminal_size", &["cli"]),
    ("unicode_width", &["cli"]),
    ("tracing_subscriber", &["ops"]),
    ("sd_notify", &["app"]),
    ("http_body_util", &["admission"]),
    ("rustls_native_certs", &["http_client"]),
    // the second for ids that are the same everywhere
    ("ring", &["outlet", "replica"]),
    ("anyhow", &["main", "app", "cli", "databases"]),
];

pub(super) fn between_rooms(source: &Source) -> Vec<(usize, String)> {
    let room = source.room();
    let Some((_, doors)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![(1, format!("`{room}` is no room of the house: give it a line in the table of doors"))];
    };
    let mut findings = Vec::new();
    for (line, path) in source.paths() {
        let Some(other) = entered(source, &path) else { continue };
        if other != room && ALL.contains(&other) && !doors.contains(&other) {
            findings.push((line, format!("{room} has no door to {other}")));
        }
    }
    findings
}

/// The room that a path enters: what follows the crate's root.
fn entered<'p>(source: &Source, path: &'p [String]) -> Option<&'p str> {
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let is_root = matches!(path.first()?.as_str(), "crate" | "allclear");
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
    let room = source.room();
    let mut findings = Vec::new();
    for (line, path) in source.paths() {
        let path = path.join("::");
        let is_it = |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        for (name, rooms) in FOREIGN.iter().filter(|(name, rooms)| is_it(name) && !rooms.contains(&room)) {
            findings.push((line, format!("{name} lives only in {}", rooms.join(", "))));
        }
    }
    findings
}

/// The names under which code sees the crates that the manifest names.
pub(super) fn dependencies(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let keys = lines.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" ="));
    keys.map(|(key, _)| key.replace('-', "_")).collect()
}

/// The machine and the simulator stand on the language alone.
pub(super) fn to_any_crate(source: &Source, dependencies: &[String]) -> Vec<String> {
    if !["machine", "simulator"].contains(&source.room()) {
        return Vec::new();
    }
    let is_foreign = |path: &[String]| path.first().is_some_and(|first| dependencies.contains(first) && path.len() > 1);
    let paths = source.paths().into_iter().filter(|(_, path)| is_foreign(path));
    paths.map(|(line, path)| format!("{}:{line}: {} uses {}", source.path, source.room(), path.join("::"))).collect()
}

#[test]
fn a_door_that_is_not_there_is_found() {
    let bad = [
        ("src/machine/a.rs", "use crate::wire::pb;"),
        ("src/ops/page/mod.rs", "use crate::{machine::id, consensus::Log};"),
        ("src/ops/page/mod.rs", "use super::super::consensus::Log;"),
        ("src/metadata/mod.rs", "use super::config;"),
        ("src/metadata/poll.rs", "fn f() -> crate::config::Config {}"),
        ("src/main.rs", "fn main() { allclear::machine::go() }"),
        ("src/attic/a.rs", ""),
    ];
    for (path, text) in bad {
        assert_eq!(between_rooms(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
    let good = [
        ("src/ops/page/mod.rs", "use crate::replica::View; use super::super::machine::id; use super::config;"),
        ("src/metadata/mod.rs", "// crate::config is not for us\n#[cfg(test)]\nmod tests { use crate::fake_cloud; }"),
        ("src/cli/run.rs", "use crate::{app, config::{self, Config}};"),
    ];
    for (path, text) in good {
        assert_eq!(between_rooms(&Source::new(path, text)), [], "{path}: {text}");
    }
}

#[test]
fn a_foreign_crate_in_the_wrong_room_is_found() {
    let bad = [
        ("src/replica/a.rs", "use openraft::Raft;"),
        ("src/replica/a.rs", "use tokio::{fs, process::{Child, Command}};"),
        ("src/cli/a.rs", "fn f() -> toml::Value {}"),
        ("src/ops/a.rs", "use ::tonic as grpc;"),
    ];
    for (path, text) in bad {
        assert!(!to_foreign_crates(&Source::new(path, text)).is_empty(), "{path}: {text}");
    }
    let good = [
        ("src/config/a.rs", "use toml::Value;"),
        ("src/rpc/a.rs", "use crate::toml::x; use tokio::fs; std::process::id();"),
    ];
    for (path, text) in good {
        assert_eq!(to_foreign_crates(&Source::new(path, text)), [], "{path}: {text}");
    }
}

#[test]
fn any_crate_in_the_machine_is_found() {
    let known =
        dependencies("[package]\nname = \"a\"\n[dependencies]\n# why\nserde-json = \"1\"\n[profile.dev]\nopt = 1\n");
    assert_eq!(known, ["serde_json"]);
    let found = |path: &str| to_any_crate(&Source::new(path, "use core::fmt; use serde_json::Value;"), &known).len();
    assert_eq!((found("src/machine/a.rs"), found("src/simulator/a.rs"), found("src/rpc/a.rs")), (1, 1, 0));
}
