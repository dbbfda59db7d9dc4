//! The clocks of command hooks. A supervisor is a process of its own and has no cluster time.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

use allclear_core::model::time::Timestamp;

pub(in crate::hooks) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::default().plus(since_epoch)
}

/// The monotonic clock, with equal readings in all processes of a machine.
pub(super) fn since_boot() -> Duration {
    // Succeeds on every system with this clock, and allclear requires such a system.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default()
}
