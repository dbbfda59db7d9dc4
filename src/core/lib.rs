//! What is decided. Pure functions over plain data: no clock, no socket, no thread, no randomness.
//!
//! Compiles as `no_std` with `alloc`; time, identity and the situation are arguments.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[macro_use]
mod words;

pub mod allowance;
pub mod apply;
pub mod cause;
pub mod cluster_time;
pub mod contacts;
pub mod errands;
pub mod explain;
pub mod impact;
pub mod isolation;
pub mod measures;
pub mod model;
pub mod new_disk;
pub mod notification;
pub mod observe;
pub mod ownership;
pub mod plan;
pub mod platform_time;
pub mod policy;
pub mod readiness;
pub mod report_limits;
pub mod schedule;
pub mod situation;
pub mod succession;
pub mod verify;
pub mod version;
pub mod veto;
