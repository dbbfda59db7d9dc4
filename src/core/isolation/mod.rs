//! Approval by an isolated replica, and the report of such approvals to the cluster.

pub mod approval;
pub mod reconciliation;
pub mod unapplied;
pub mod unaware_replicas;
pub mod watch;
