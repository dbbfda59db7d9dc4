//! Compiles `machine` once more, without the standard library: a clock, a socket, a thread, randomness or a hash map
//! with a random order in it does not compile here. That it uses no other crate is checked by `tests/tidy.rs`.

#![no_std]

extern crate alloc;

#[path = "../../src/machine/mod.rs"]
pub mod machine;
