//! Claim: other systems are told what happens, once for the whole cluster and in its order, by real replicas over real
//! HTTP and HTTPS; whoever does not take it is told later, and nothing and nobody waits for that.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "others use it")]
mod certificates;
#[path = "../cluster/cloud.rs"]
#[allow(dead_code, reason = "others use it")]
mod cloud;
#[path = "../cluster/cluster.rs"]
#[allow(dead_code, unused_imports, reason = "others use it")]
mod cluster;
#[path = "../cluster/collector.rs"]
#[allow(dead_code, reason = "others use it")]
mod collector;
#[path = "../cluster/dialled.rs"]
#[allow(dead_code, reason = "others use it")]
mod dialled;
#[path = "../cluster/disks.rs"]
#[allow(dead_code, reason = "others use it")]
mod disks;
mod inbox;
#[path = "../cluster/links.rs"]
#[allow(dead_code, reason = "others use it")]
mod links;
mod lives;
mod losses;
mod marks;
#[path = "../cluster/namespaces.rs"]
#[allow(dead_code, reason = "others use it")]
mod namespaces;
#[path = "../cluster/plan.rs"]
#[allow(dead_code, reason = "others use it")]
mod plan;
mod secrets;
mod shipped;
mod told;
#[path = "../cluster/workload.rs"]
#[allow(dead_code, reason = "others use it")]
mod workload;
