//! What decides and what could happen, compiled by itself for the suites that search: `cargo prove`.

extern crate alloc;

#[path = "../../src/machine/mod.rs"]
pub mod machine;
#[path = "../../src/simulator/mod.rs"]
pub mod simulator;
