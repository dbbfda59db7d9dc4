//! Approval by an isolated replica, and the report of such approvals to the cluster.

pub mod approval;
pub mod furthest;
pub mod reconcile;
pub mod unaware;
pub mod watch;
