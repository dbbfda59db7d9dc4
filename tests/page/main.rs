//! Claim: the page of a replica shows a person what is open, why it waits, what happens next and what to do, in a real
//! browser and without a reload; also when the others are gone, when it is gone itself, and whatever names it is given.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod browser;
#[path = "../cluster/cloud.rs"]
#[allow(dead_code, reason = "others use it")]
mod cloud;
#[path = "../cluster/cluster.rs"]
#[allow(dead_code, unused_imports, reason = "others use it")]
mod cluster;
#[path = "../cluster/dialled.rs"]
#[allow(dead_code, reason = "others use it")]
mod dialled;
#[path = "../cluster/disks.rs"]
#[allow(dead_code, reason = "others use it")]
mod disks;
mod hostile;
#[path = "../cluster/links.rs"]
#[allow(dead_code, reason = "others use it")]
mod links;
mod lives;
mod lost;
#[path = "../cluster/namespaces.rs"]
#[allow(dead_code, reason = "others use it")]
mod namespaces;
mod openapi;
#[path = "../cluster/plan.rs"]
#[allow(dead_code, reason = "others use it")]
mod plan;
#[path = "../cluster/said.rs"]
mod said;
mod screenshots;
mod watch;
#[path = "../cluster/workload.rs"]
#[allow(dead_code, reason = "others use it")]
mod workload;
