//! What is decided. Pure functions over plain data: no clock, no socket, no thread, no randomness.
//!
//! Compiles as `no_std` with `alloc`; time, identity and the situation are arguments.

pub mod alone;
pub mod apply;
pub mod attempt;
pub mod blocker;
pub mod budget;
pub mod cause;
pub mod claim;
pub mod command;
pub mod departure;
pub mod document;
pub mod drill;
pub mod errands;
pub mod event;
pub mod explain;
pub mod id;
pub mod impact;
pub mod invariants;
pub mod left_out;
pub mod lifecycle;
pub mod measures;
mod needs;
pub mod notice;
pub mod observe;
pub mod obstacle;
pub mod operator;
pub mod order;
pub mod plan;
pub mod policy;
pub mod restoring;
mod roster;
mod running;
pub mod sight;
pub mod situation;
pub mod state;
pub mod steps;
pub mod succession;
pub mod suspicion;
pub mod takeover;
pub mod time;
pub mod transition;
mod unregistered;
pub mod veto;
pub(crate) mod words;
pub mod workload;
