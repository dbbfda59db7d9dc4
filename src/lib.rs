//! allclear answers for a replicated database when the cloud asks to take a machine down.
//! Where each piece lives is told in `src/ARCHITECTURE.md`.

pub mod cli;

pub use allclear_client as workload;
pub use allclear_core as machine;
#[cfg(feature = "lab")]
pub use allclear_lab::{databases, fake_cloud};
pub use allclear_server::{
    admission, app, config, consensus, files, http_client, metadata, ops, outlet, reach, replica, rpc, secrets, tls,
    workloads,
};
pub use allclear_wire as wire;
