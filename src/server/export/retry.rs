//! The schedule of retries after a failed export. Time and jitter are arguments.

use std::time::Duration;

use allclear_core::model::time::Timestamp;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(2);
/// The limit for a receiver's requested pause.
const PATIENCE: Duration = Duration::from_mins(10);

/// All times are of one monotonic clock.
#[derive(Default, Debug)]
pub(super) struct RetrySchedule {
    failures: u32,
    again_at: Option<Timestamp>,
}

impl RetrySchedule {
    /// The wait before the next attempt.
    pub(super) fn wait(&self, now: Timestamp) -> Duration {
        self.again_at.map_or(Duration::ZERO, |at| at.since(now))
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// `asked` is the pause the receiver asks for; `jitter` is any number, drawn anew each time.
    pub(super) fn failed(&mut self, now: Timestamp, asked: Option<Duration>, jitter: u8) {
        let doubled = (SHORTEST * (1 << self.failures.min(10))).min(LONGEST);
        let wait = doubled / 2 + doubled / 2 * u32::from(jitter) / u32::from(u8::MAX);
        self.failures += 1;
        self.again_at = Some(now.plus(wait.max(asked.unwrap_or_default().min(PATIENCE))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn the_wait_doubles_up_to_a_bound_and_begins_anew_after_a_success() {
        let mut pace = RetrySchedule::default();
        assert_eq!(pace.wait(NOW), Duration::ZERO);
        let mut waits = Vec::new();
        for _ in 0..12 {
            pace.failed(NOW, None, u8::MAX);
            waits.push(pace.wait(NOW).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120, 120]);
        pace.succeeded();
        pace.failed(NOW, None, 0);
        assert_eq!((pace.wait(NOW), pace.failures()), (Duration::from_millis(500), 1));
        assert_eq!(pace.wait(NOW.plus(SHORTEST)), Duration::ZERO);
    }

    #[test]
    fn a_receiver_that_wants_to_be_left_alone_is_but_not_for_long() {
        let mut pace = RetrySchedule::default();
        pace.failed(NOW, Some(Duration::from_secs(90)), 0);
        assert_eq!(pace.wait(NOW), Duration::from_secs(90));
        pace.failed(NOW, Some(Duration::MAX), 0);
        assert_eq!(pace.wait(NOW), PATIENCE);
    }
}
