//! Hooks are run as `contract.md` 3 says, once each, whatever happens to the replica: with real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bench;
mod contract;
mod ending;
mod hostile;
mod moments;
mod restart;
mod roles;
mod stand_in;
mod user;
