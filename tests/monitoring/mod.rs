//! Claim: `/metrics` is true of a real cluster and in the format that Prometheus reads, and every metric, alert and
//! anchor named in `deploy/monitoring` exists.

mod exposition;
mod lives;
mod names;
mod promtool;
mod shipped;

use crate::cluster::cluster;
use crate::cluster::workload;
