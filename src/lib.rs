//! allclear answers for a replicated database when the cloud asks to take a machine down.
//! Where each piece lives is told in `src/ARCHITECTURE.md`.

extern crate alloc;

pub mod fake_cloud;
pub mod machine;
pub mod simulator;
pub mod wire;
