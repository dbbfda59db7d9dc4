//! All suites that start processes, servers or whole clusters, in one program with one pool of threads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

/// The name of a test of this module, with which another run of this program runs only this test. A name without a test
/// does not compile: the run would execute no test, and succeed.
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
mod left_out;
mod machine_share;
mod metadata;
mod monitoring;
mod notify;
mod page;
mod tls;
mod workloads;
mod yet_to_run;
