//! Claim: a hostile program on a replica's machine, which opens connections and says nothing, drips, announces what is
//! huge, never reads, asks without end and breaks the protocol, on every listener at once, costs the replica little
//! memory and delays no approval. The replicas are processes of the real program, the attackers are here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod approvals;
mod attacks;
mod between;
#[path = "../cluster/cloud.rs"]
#[allow(dead_code, reason = "others use it")]
mod cloud;
#[path = "../cluster/cluster.rs"]
#[allow(dead_code, unused_imports, reason = "others use it")]
mod cluster;
mod confined;
#[path = "../cluster/dialled.rs"]
#[allow(dead_code, reason = "others use it")]
mod dialled;
#[path = "../cluster/disks.rs"]
#[allow(dead_code, reason = "others use it")]
mod disks;
mod doors;
mod flood;
mod frames;
#[path = "../tls/knock.rs"]
#[allow(dead_code, reason = "others use it")]
mod knock;
mod lies;
#[path = "../cluster/links.rs"]
#[allow(dead_code, reason = "others use it")]
mod links;
mod memory;
#[path = "../cluster/namespaces.rs"]
#[allow(dead_code, reason = "others use it")]
mod namespaces;
#[path = "../tls/pki.rs"]
#[allow(dead_code, reason = "others use it")]
mod pki;
#[path = "../cluster/plan.rs"]
#[allow(dead_code, reason = "others use it")]
mod plan;
mod protocols;
mod somebody;
mod together;
mod unfinished;
mod unread;
#[path = "../cluster/workload.rs"]
#[allow(dead_code, reason = "others use it")]
mod workload;

/// One at a time: each measures.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
