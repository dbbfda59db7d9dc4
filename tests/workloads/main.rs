//! Hooks are run as `contract.md` 3 says, once each, whatever happens to the replica: with real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bench;
#[path = "../notify/certificates.rs"]
mod certificates;
mod command;
mod confined;
mod contract;
mod ending;
mod full_disks;
mod hostile;
mod http;
mod kind;
mod moments;
mod patroni;
mod restart;
mod roles;
mod secrets;
mod secured;
mod server;
mod stand_in;
mod user;
