//! How replicas reach each other, and what they agree on: connections, limits for callers, TLS, and Raft with its log.

extern crate alloc;

pub mod consensus;
pub mod net;
