//! The decisions of allclear. Pure functions over plain data: no clock, no socket, no thread, no randomness.
//!
//! Compiles as `no_std` with `alloc`; time, identity and the planning input are arguments.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[macro_use]
mod string_enum;

pub mod allowance;
pub mod apply;
pub mod assignments;
pub mod cluster_time;
pub mod disk_loss;
pub mod explain;
pub mod impact;
pub mod isolation;
pub mod known_roles;
pub mod leadership;
pub mod model;
pub mod notification;
pub mod observation;
pub mod ownership;
pub mod peer_table;
pub mod plan;
pub mod planning_input;
pub mod platform_time;
pub mod policy;
pub mod procedure;
pub mod readiness;
pub mod report_limits;
pub mod schedule;
pub mod start_cause;
pub mod timings;
pub mod verify;
pub mod version;
