//! allclear answers for a replicated database when the cloud asks to take a machine down. Each module is described in
//! `src/ARCHITECTURE.md`.

pub mod cli;

pub use allclear_client as workload;
pub use allclear_core as core;
#[cfg(feature = "lab")]
pub use allclear_lab::{fake_cloud, testbed};
pub use allclear_server::{
    app, config, consensus, control_plane, export, files, grpc, hooks, http, http_client, imds, net, replica, secrets,
};
pub use allclear_wire as wire;
