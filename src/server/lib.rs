//! One replica of allclear: everything around the core that touches the world.

extern crate alloc;

pub mod admission;
pub mod app;
pub mod config;
pub mod consensus;
pub mod exit;
pub mod files;
pub mod http_client;
pub mod metadata;
pub mod ops;
pub mod outlet;
pub mod reach;
pub mod replica;
pub mod rpc;
pub mod secrets;
pub mod signals;
pub mod tls;
pub mod workloads;
