//! The core and the simulator for suites which search: `cargo prove`. Only here the simulation has its deliberate
//! faults.

pub use allclear_core as core;
pub use allclear_sim as simulator;
