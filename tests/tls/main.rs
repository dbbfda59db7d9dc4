//! Claim: replicas with certificates talk to replicas of their cluster and to nobody else. Whoever shows a wrong
//! certificate or none, on either side, is refused, counted and told; certificates are renewed and authorities replaced
//! without a restart; and half-open connections are in nobody's way. The certificates are made here, the replicas are
//! processes of the real program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod certs;
mod check;
#[path = "../cluster/cloud.rs"]
#[allow(dead_code, reason = "others use it")]
mod cloud;
#[path = "../cluster/cluster.rs"]
#[allow(dead_code, unused_imports, reason = "others use it")]
mod cluster;
mod dialled;
mod dialling;
#[path = "../cluster/disks.rs"]
#[allow(dead_code, reason = "others use it")]
mod disks;
mod flood;
mod impostors;
mod knock;
#[path = "../cluster/links.rs"]
#[allow(dead_code, reason = "others use it")]
mod links;
mod lives;
mod named;
#[path = "../cluster/namespaces.rs"]
#[allow(dead_code, reason = "others use it")]
mod namespaces;
mod pki;
#[path = "../cluster/plan.rs"]
#[allow(dead_code, reason = "others use it")]
mod plan;
mod removed;
mod renewal;
#[path = "../cluster/resolver.rs"]
mod resolver;
#[path = "../cluster/workload.rs"]
#[allow(dead_code, reason = "others use it")]
mod workload;
