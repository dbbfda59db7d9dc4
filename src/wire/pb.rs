//! The generated messages and services, as modules named like their packages.
#![allow(clippy::all, clippy::pedantic, clippy::unwrap_used, unreachable_pub)]

include!(concat!(env!("OUT_DIR"), "/protos.rs"));

/// The descriptors of every package, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
