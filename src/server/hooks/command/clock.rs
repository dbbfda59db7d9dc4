//! The clocks of command hooks. A supervisor is a process of its own and has no cluster time.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

use allclear_core::model::time::Timestamp;

pub(in crate::hooks) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::default().plus(since_epoch)
}

/// The steady clock, which all processes of a machine read alike.
pub(super) fn since_boot() -> Duration {
    // Fails on no system that has this clock, and allclear needs one that has.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}
