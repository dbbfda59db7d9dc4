//! Consensus on openraft and redb: one log, in the same order at every replica.
//!
//! The log has opaque bytes. `StateMachine` gives them their meaning. No other module knows openraft.
//!
//! openraft warns about every failed call, and logs an error for every call that a stop interrupts, so its target
//! `openraft` is not logged by default. This module logs each change once: of the Raft status, and of a replica that is
//! lost or back.

mod authentication;
mod autopilot;
mod backend;
mod bootstrap;
mod checked;
mod cluster_service;
mod codec;
mod commit_counter;
mod contact;
mod disk;
mod environment;
mod failure;
mod forward;
mod handle;
mod heartbeat;
mod integrity;
mod isolation;
mod join_requests;
mod log;
mod log_size;
mod member_list;
mod membership;
mod membership_plan;
mod membership_request;
mod network;
mod node;
mod options;
mod peers;
mod propose;
mod quorum_epochs;
mod raft_service;
mod raft_status;
mod read_index;
mod restore;
mod serve;
mod single_flight;
mod start;
mod state_machine;
mod state_machine_store;
mod status;
mod tables;
mod term_check;
mod transfer;
mod types;
mod unstable_log;
mod vouches;
mod vouching;
mod weights;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod power_cut_tests;
#[cfg(test)]
mod recent_tests;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod store_tests;

pub use environment::{Environment, Work};
pub use failure::{OpenError, RequestError};
pub use member_list::{MemberNames, MemberStatus};
pub use membership::is_address;
pub use membership_request::OperatorContext;
pub use node::Consensus;
pub use options::{MAX_PROPOSAL_BYTES, MAX_REPLICAS, MAX_VOTERS, Options, RaftTiming, SNAPSHOT_EVERY};
pub use raft_status::{RaftRole, RaftStatus};
pub use restore::{DiskContents, SurvivingReplica};
pub use serve::{serve, serve_incoming};
pub use state_machine::{NotUnderstood, StateMachine};
