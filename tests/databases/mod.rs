//! Claim: with real database servers, three members with a replica beside each and the hook set of `deploy/hooks`, no
//! acknowledged write is lost whatever event takes the primary's VM, and every member has every acknowledged write
//! exactly once after the event. The cloud is emulated, and every part runs on loopback.
//!
//! The cost of an event is measured by `costs.rs`, and asserted nowhere.

mod candidates;
mod costs;
mod etcd;
mod events;
mod hook;
mod killed;
mod losses;
mod mariadb;
mod mishaps;
mod patroni;
mod postgresql;
mod redis;
mod stage;
mod trio;
mod writers;

use crate::cluster::cluster;
use crate::cluster::plan;
use crate::notify::certificates;

use allclear::testbed::{processes, record};
