//! allclear answers for a replicated database when the cloud asks to take a machine down.
//! Where each piece lives is told in `src/ARCHITECTURE.md`.

extern crate alloc;
// the example database that the demo shows names this crate as everybody does who embeds it
extern crate self as allclear;

pub mod admission;
pub mod app;
pub mod cli;
pub mod config;
pub mod consensus;
pub mod databases;
pub mod fake_cloud;
pub mod files;
pub mod http_client;
pub mod machine;
pub mod metadata;
pub mod ops;
pub mod outlet;
pub mod reach;
pub mod replica;
pub mod rpc;
pub mod secrets;
pub mod simulator;
pub mod tls;
pub mod wire;
pub mod workload;
pub mod workloads;
