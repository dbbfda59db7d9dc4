//! Agreeing: one log that every replica of a cluster folds in the same order, on openraft and redb.
//!
//! The log carries opaque bytes; what they mean is the `Fold`'s business. Nothing outside this room knows openraft.
//!
//! openraft warns about every failed call, so its target `openraft` is to be logged from `error` on. What people need
//! to know is logged here, once per change: a new standing, a replica that is lost or back.

mod alone;
mod ask;
mod askers;
mod caller;
mod change;
mod cluster_service;
mod codec;
mod confirm;
mod contact;
mod disk;
mod door;
mod due;
mod failure;
mod fold;
mod formation;
mod heartbeat;
mod inspection;
mod leap;
mod log;
mod means;
mod membership;
mod network;
mod node;
mod options;
mod peers;
mod platter;
mod propose;
mod raft_service;
mod recent;
mod restore;
mod roster;
mod sealed;
mod serve;
mod shared;
mod standing;
mod state;
mod tally;
mod transfer;
mod turns;
mod types;
mod upkeep;
mod vouching;
mod weight;

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

pub use change::OnBehalf;
pub use failure::{AskError, OpenError};
pub use fold::{Fold, Undecodable};
pub use means::{Means, Work};
pub use node::Consensus;
pub use options::{MAX_PROPOSAL_BYTES, MAX_REPLICAS, MAX_VOTERS, Options, SNAPSHOT_EVERY, Timing};
pub use restore::{Holding, Survivor};
pub use roster::{Members, Seat};
pub use serve::{serve, serve_incoming};
pub use standing::{Role, Standing};
