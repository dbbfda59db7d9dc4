//! Claim: other systems are told what happens, once for the whole cluster and in its order, by real replicas over real
//! HTTP and HTTPS; whoever does not take it is told later, and nothing and nobody waits for that.

#[allow(dead_code, reason = "others use it")]
pub(crate) mod certificates;
mod inbox;
mod lives;
mod losses;
mod marks;
mod secrets;
mod shipped;
mod told;

use crate::cluster::cluster;
use crate::cluster::collector;
use crate::cluster::dialled;
use crate::cluster::plan;
use crate::cluster::workload;
