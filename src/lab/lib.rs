//! Tools for trying allclear out, and the base of its tests: a metadata service on loopback, real databases, the demo
//! and the benchmarks.

pub mod bench;
pub mod demo;
pub mod demo_hook;
pub mod demo_kv;
pub mod fake_cloud;
mod kv;
mod local_cluster;
pub mod testbed;
