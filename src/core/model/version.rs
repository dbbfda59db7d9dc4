//! The cluster version that this program knows, and the first one.

/// The highest cluster version that this program knows.
pub const VERSION: u64 = 1;

/// The version of a cluster that was never raised.
pub const FIRST: u64 = 1;
