//! Claim: the page of a replica shows a person the open events, their blockers, the next steps and possible actions, in
//! a real browser and without a reload; also when the other replicas or this replica are gone, and with any names.

mod access;
mod browser;
mod hostile;
mod lives;
mod lost;
mod openapi;
mod screenshots;
mod watch;

use crate::cluster::cluster;
use crate::cluster::dialled;
use crate::cluster::said;
use crate::cluster::workload;
