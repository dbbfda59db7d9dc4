//! All suites that start processes, servers or whole clusters. One program: one pool of threads runs them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

/// The name of a test of this module, for whoever runs this program again to play that test alone. A name without a test does
/// not compile: it would play none, and succeed.
macro_rules! own_test {
    ($test:ident) => {{
        let _: fn() = $test;
        concat!(module_path!(), "::", stringify!($test)).trim_start_matches("processes::")
    }};
}
pub(crate) use own_test;

mod access;
mod cli;
mod clients;
mod cluster;
mod consensus;
mod databases;
mod deploy;
mod flood;
mod hostile;
mod machine_share;
mod metadata;
mod monitoring;
mod notify;
mod page;
mod tls;
mod workloads;
