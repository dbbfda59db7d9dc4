//! Claim: what `/metrics` says is true of a real cluster and in the form that Prometheus reads, and every metric, alert
//! and anchor that `deploy/monitoring` names is there.

mod exposition;
mod lives;
mod names;
mod promtool;
mod shipped;

use crate::cluster::cluster;
use crate::cluster::workload;
