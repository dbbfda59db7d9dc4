//! The cloud's clock: the wall clock is read once and then advanced by the monotonic clock, so that setting the wall
//! clock does not disturb open events. No other file of this module reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use allclear_core::model::time::Timestamp;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
    /// The wall clock at the start, since 1970.
    wall: Duration,
}

impl Clock {
    pub(super) fn begin() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), wall }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp(0).plus(self.since_1970())
    }

    pub(super) fn since_1970(&self) -> Duration {
        self.wall + self.began.elapsed()
    }
}
