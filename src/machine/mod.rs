//! What is decided. Pure functions over plain data: no clock, no socket, no thread, no randomness.
//!
//! Compiles as `no_std` with `alloc`; time, identity and the situation are arguments.

pub mod document;
pub mod id;
pub mod time;
pub mod workload;
