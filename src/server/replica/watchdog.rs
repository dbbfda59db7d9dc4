//! Watches the loops of this replica. Each loop reports the length of the next wait at each turn. An overdue loop has
//! stalled, and only a new process helps.
//!
//! Every wait within a turn is bounded, also without a quorum, a leader or an answer of the metadata service, so none
//! of these counts as a stall.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::clock::{self, Rhythm};
use allclear_core::model::time::Timestamp;
use allclear_core::string_enum;

/// Longer than any wait of a loop within a turn; the metadata service's first answer takes longest.
const OVERDUE_AFTER: Duration = Duration::from_mins(4);
/// A wait for others without a limit.
const RESTS: i64 = i64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loop {
    Drive,
    Errands,
    Poll,
    Alone,
}

string_enum!(Loop { Drive => "driver", Errands => "errands", Poll => "poll", Alone => "alone" });

pub struct Watchdog {
    /// The latest time for the next turn of each loop, on the monotonic clock.
    back_at: [AtomicI64; Loop::ALL.len()],
    rhythm: Rhythm,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self { back_at: Loop::ALL.map(|_| AtomicI64::new(RESTS)), rhythm: Rhythm::default() }
    }
}

impl Watchdog {
    /// The time until the next turn of the loops with this interval; never longer than the interval. All loops turn at
    /// the same moments, which wakes an idle machine once for all loops and not once for each.
    pub fn until_turn(&self, every: Duration) -> Duration {
        self.rhythm.until_next(every)
    }

    pub(super) fn arm(&self, turning: Loop, wait: Duration) {
        self.expect(turning, clock::monotonic().plus(wait).plus(OVERDUE_AFTER).0);
    }

    /// The loop has nothing to do, or has ended.
    pub(super) fn disarm(&self, turning: Loop) {
        self.expect(turning, RESTS);
    }

    /// A loop overdue by now.
    pub fn stalled_loop(&self) -> Option<Loop> {
        self.overdue(clock::monotonic())
    }

    fn overdue(&self, now: Timestamp) -> Option<Loop> {
        Loop::ALL
            .into_iter()
            .zip(&self.back_at)
            .find_map(|(turning, at)| (at.load(Ordering::Relaxed) < now.0).then_some(turning))
    }

    fn expect(&self, turning: Loop, at: i64) {
        self.back_at[turning as usize].store(at, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(1);

    #[test]
    fn a_loop_stands_still_when_it_is_not_back_long_after_it_said() {
        let watchdog = Watchdog::default();
        let far = clock::monotonic().plus(Duration::from_hours(1));
        assert_eq!(watchdog.overdue(far), None, "none has begun");
        watchdog.arm(Loop::Poll, WAIT);
        let began = clock::monotonic();
        assert_eq!(watchdog.overdue(began.plus(WAIT)), None);
        assert_eq!(watchdog.overdue(began.plus(WAIT + OVERDUE_AFTER + WAIT)), Some(Loop::Poll));
        watchdog.disarm(Loop::Poll);
        assert_eq!(watchdog.overdue(far), None);
    }

    #[test]
    fn a_loop_that_goes_round_does_not_hide_one_that_does_not() {
        let watchdog = Watchdog::default();
        watchdog.arm(Loop::Alone, WAIT);
        watchdog.arm(Loop::Drive, Duration::from_hours(2));
        assert_eq!(watchdog.overdue(clock::monotonic().plus(Duration::from_hours(1))), Some(Loop::Alone));
    }
}
