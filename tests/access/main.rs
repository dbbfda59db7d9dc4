//! Claim: on a machine that others use too, a replica is asked by those who may and by nobody else: sockets have their
//! modes and their owner and take nobody's place, every call is judged by who makes it, no port takes what is for
//! sockets, the status port answers only those who mean it, and whoever is refused is counted and told of. The attacks
//! are tried on processes of the real program, by processes of other users; the latter needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod callers;
#[path = "../hostile/calls.rs"]
mod calls;
#[path = "../cluster/cloud.rs"]
#[allow(dead_code, reason = "others use it")]
mod cloud;
#[path = "../cluster/cluster.rs"]
#[allow(dead_code, unused_imports, reason = "others use it")]
mod cluster;
#[path = "../cluster/disks.rs"]
#[allow(dead_code, reason = "others use it")]
mod disks;
mod files;
#[path = "../cluster/links.rs"]
#[allow(dead_code, reason = "others use it")]
mod links;
#[path = "../cluster/namespaces.rs"]
#[allow(dead_code, reason = "others use it")]
mod namespaces;
#[path = "../tls/pki.rs"]
#[allow(dead_code, reason = "others use it")]
mod pki;
#[path = "../cluster/plan.rs"]
#[allow(dead_code, reason = "others use it")]
mod plan;
mod ports;
mod sockets;
mod somebody;
mod status;
#[path = "../cluster/workload.rs"]
#[allow(dead_code, reason = "others use it")]
mod workload;
