//! Claim: other systems are notified of events, once for the whole cluster and in order, by real replicas over real
//! HTTP and HTTPS; a failed delivery is retried later, and no work waits for the retry.

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
