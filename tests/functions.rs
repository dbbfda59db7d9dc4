//! All suites that start no process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod costs;
mod fake_cloud;
mod machine;
mod tidy;
mod wire;

/// Of many invented inputs every one with `CI` or `ALLCLEAR_LONG`, else every third.
pub(crate) fn every_third() -> usize {
    if ["CI", "ALLCLEAR_LONG"].iter().any(|name| std::env::var_os(name).is_some()) { 1 } else { 3 }
}
