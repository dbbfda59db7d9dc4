//! One replica of allclear: all effects around the core.

extern crate alloc;

pub mod app;
pub mod config;
pub mod exit;
pub mod export;
pub mod grpc;
pub mod http;
pub mod signals;

pub use allclear_cluster::{consensus, net};
pub use allclear_effects::{control_plane, hooks, http_client, imds, secrets};
pub use allclear_files as files;
pub use allclear_replica as replica;
