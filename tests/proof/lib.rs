//! What decides and what could happen, for the suites that search: `cargo prove`. Here alone the simulation has its
//! deliberate faults.

pub use allclear_core as core;
pub use allclear_sim as simulator;
