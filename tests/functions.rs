//! All suites that start no process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod costs;
mod fake_cloud;
mod machine;
mod tidy;
mod wire;
