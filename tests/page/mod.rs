//! Claim: the page of a replica shows a person what is open, why it waits, what happens next and what to do, in a real
//! browser and without a reload; also when the others are gone, when it is gone itself, and whatever names it is given.

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
