//! What is decided. Pure functions over plain data: no clock, no socket, no thread, no randomness.
//!
//! Compiles as `no_std` with `alloc`; time, identity and the situation are arguments.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[macro_use]
mod words;

pub mod allowance;
pub mod alone;
pub mod apply;
pub mod attempt;
pub mod blocker;
pub mod cause;
pub mod claim;
pub mod cluster_time;
pub mod command;
pub mod contacts;
pub mod departure;
pub mod document;
pub mod drill;
pub mod errands;
pub mod event;
pub mod exclusion;
pub mod explain;
pub mod hook_id;
pub mod id;
pub mod impact;
pub mod invariants;
pub mod last_call;
pub mod left_out;
pub mod lifecycle;
pub mod measures;
mod needs;
pub mod new_disk;
pub mod notice;
pub mod observe;
pub mod obstacle;
pub mod operator;
pub mod order;
pub mod ownership;
mod peers;
pub mod plan;
pub mod platform_time;
pub mod policy;
pub mod readiness;
pub mod restoring;
pub mod room;
mod roster;
mod running;
pub mod sight;
pub mod situation;
pub mod slot;
pub mod slot_changes;
pub mod slots;
pub mod state;
pub mod steps;
pub mod succession;
pub mod suspicion;
pub mod takeover;
pub mod time;
pub mod transition;
mod unregistered;
pub mod version;
pub mod veto;
pub mod workload;
