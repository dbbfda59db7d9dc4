//! Claim: with real database servers, three members with a replica beside each and the hook set of `deploy/hooks`, no
//! acknowledged write is lost whatever event takes the primary's VM, and every member has every acknowledged write
//! exactly once when it is over. The cloud is the fake one, and all of it lives on loopback.
//!
//! What an event costs is measured by `costs.rs`, and asserted nowhere.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../notify/certificates.rs"]
#[allow(dead_code, reason = "others use it")]
mod certificates;
#[path = "../cluster/cloud.rs"]
#[allow(dead_code, reason = "others use it")]
mod cloud;
#[path = "../cluster/cluster.rs"]
#[allow(dead_code, unused_imports, reason = "others use it")]
mod cluster;
mod costs;
#[path = "../cluster/disks.rs"]
#[allow(dead_code, reason = "others use it")]
mod disks;
mod etcd;
mod events;
mod hook;
mod killed;
#[path = "../cluster/links.rs"]
#[allow(dead_code, reason = "others use it")]
mod links;
mod losses;
mod mariadb;
mod mishaps;
#[path = "../cluster/namespaces.rs"]
#[allow(dead_code, reason = "others use it")]
mod namespaces;
mod patroni;
#[path = "../cluster/plan.rs"]
#[allow(dead_code, reason = "others use it")]
mod plan;
mod postgresql;
mod redis;
mod stage;
mod trio;
#[path = "../cluster/workload.rs"]
#[allow(dead_code, reason = "others use it")]
mod workload;
mod writers;

use allclear::databases::{processes, record};
