//! The schedule of polls. Time and jitter are arguments.
//!
//! Never polls more than once per interval, because the service counts the requests of the whole VM.

use core::time::Duration;

use super::no_information::NoInformation;
use allclear_core::model::time::Timestamp;

/// The longest wait after failures while an event is open, since the event may start at any time.
const LONGEST_WHILE_OPEN: Duration = Duration::from_secs(5);
/// The longest wait after failures otherwise.
const LONGEST: Duration = Duration::from_secs(30);
/// The shortest wait after 429: other programs on this VM poll too, and share a limit of five requests per second.
const SHORTEST_WHEN_THROTTLED: Duration = Duration::from_secs(2);
/// Doublings after which every backoff has reached its maximum.
const MAX_DOUBLINGS: u32 = 16;

/// The polling interval of one replica, and the results of its recent polls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PollSchedule {
    interval: Duration,
    failures: u32,
    /// The status of the last failure, if any.
    last: Option<u16>,
}

/// One replica's position in the cluster's polling schedule, which changes as members are added and removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollSlot {
    place: u32,
    replicas: u32,
}

impl PollSlot {
    /// Makes the slot of the replica at `place` (from 0) of `replicas`.
    pub fn new(place: usize, replicas: usize) -> Self {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let replicas = number(replicas).max(1);
        Self { place: number(place) % replicas, replicas }
    }
}

impl PollSchedule {
    pub fn new(interval: Duration) -> Self {
        // A zero interval would poll without a pause.
        Self { interval: interval.max(Duration::from_millis(1)), failures: 0, last: None }
    }

    /// Records a validated document.
    pub fn document(&mut self) {
        self.failures = 0;
    }

    /// Records a poll without a document.
    pub fn failed(&mut self, why: &NoInformation) {
        if !why.is_failure() {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.last = if let NoInformation::Status { code, .. } = why { Some(*code) } else { None };
    }

    /// The wait from `now` on the wall clock. `jitter` is any number, drawn anew each time.
    pub fn wait(&self, slot: PollSlot, now: Timestamp, event_open: bool, jitter: u8) -> Duration {
        let interval = if event_open { self.interval.min(LONGEST_WHILE_OPEN) } else { self.interval };
        if self.failures == 0 { until_slot(slot, now, interval) } else { self.backoff(event_open, jitter) }
    }

    /// A wait that doubles with each failure; drawn between half and all, so that replicas do not poll at once.
    fn backoff(&self, event_open: bool, jitter: u8) -> Duration {
        // The VM is being moved: the move ends within 70 s, and an event may follow at once.
        let moving = self.last == Some(410);
        let longest = if event_open || moving { LONGEST_WHILE_OPEN } else { LONGEST };
        let doubled = self.interval.saturating_mul(1 << (self.failures - 1).min(MAX_DOUBLINGS)).min(longest);
        let wait = doubled / 2 + doubled / 2 * u32::from(jitter) / u32::from(u8::MAX);
        if self.last == Some(429) { wait.max(SHORTEST_WHEN_THROTTLED) } else { wait }
    }
}

/// The time until the replica's next slot, at its share of the interval after a multiple of the interval; never zero.
fn until_slot(slot: PollSlot, now: Timestamp, interval: Duration) -> Duration {
    let offset = interval.saturating_mul(slot.place) / slot.replicas;
    let nanos = |span: Duration| i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
    let since_slot = (i128::from(now.0) * 1_000_000 - nanos(offset)).rem_euclid(nanos(interval));
    Duration::from_nanos(u64::try_from(nanos(interval) - since_slot).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after(failures: u32, code: u16) -> PollSchedule {
        let mut pace = PollSchedule::new(SECOND);
        for _ in 0..failures {
            pace.failed(&NoInformation::Status { code, said: String::new() });
        }
        pace
    }

    /// The shortest and the longest wait over all jitters, in milliseconds.
    fn range(pace: &PollSchedule, event_open: bool) -> (u128, u128) {
        let waits =
            || (0..=u8::MAX).map(|jitter| pace.wait(PollSlot::new(0, 3), Timestamp(0), event_open, jitter).as_millis());
        (waits().min().unwrap(), waits().max().unwrap())
    }

    #[test]
    fn replicas_poll_at_even_distances_of_the_wall_clock() {
        for now in [0, 1, 999, 1_649_716_018_123, -7, -1000] {
            let next = [0, 1, 2, 3].map(|place| {
                let wait = PollSchedule::new(SECOND).wait(PollSlot::new(place, 4), Timestamp(now), false, 0);
                assert!(wait > Duration::ZERO && wait <= SECOND, "{now} {wait:?}");
                Timestamp(now).plus(wait).0.rem_euclid(1000)
            });
            assert_eq!(next, [0, 250, 500, 750], "{now}");
        }
    }

    #[test]
    fn a_place_beyond_the_cluster_and_an_empty_cluster_still_poll() {
        for (place, replicas) in [(7, 3), (0, 0), (usize::MAX, 1)] {
            let wait = PollSchedule::new(SECOND).wait(PollSlot::new(place, replicas), Timestamp(5), false, 0);
            assert!(wait > Duration::ZERO && wait <= SECOND);
        }
    }

    #[test]
    fn extreme_times_and_intervals_do_not_overflow() {
        for interval in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            for now in [i64::MIN, i64::MAX] {
                assert!(
                    PollSchedule::new(interval).wait(PollSlot::new(1, 2), Timestamp(now), true, 255) > Duration::ZERO
                );
            }
        }
    }

    #[test]
    fn failures_double_the_wait_up_to_its_longest() {
        assert_eq!(range(&after(1, 503), false), (500, 1000));
        assert_eq!(range(&after(2, 503), false), (1000, 2000));
        assert_eq!(range(&after(3, 503), false), (2000, 4000));
        assert_eq!(range(&after(6, 503), false), (15_000, 30_000));
        assert_eq!(range(&after(u16::MAX.into(), 503), false), (15_000, 30_000));
    }

    #[test]
    fn nobody_waits_longer_than_five_seconds_while_an_event_is_open() {
        assert_eq!(range(&after(1, 503), true), (500, 1000));
        assert_eq!(range(&after(90, 503), true), (2500, 5000));
    }

    #[test]
    fn a_long_interval_is_shortened_while_an_event_is_open() {
        let wait = |open| PollSchedule::new(Duration::from_mins(1)).wait(PollSlot::new(1, 2), Timestamp(0), open, 0);
        assert_eq!((wait(false), wait(true)), (Duration::from_secs(30), Duration::from_millis(2500)));
    }

    #[test]
    fn a_throttled_poll_waits_out_the_second_and_a_moving_vm_is_soon_asked_again() {
        assert_eq!(range(&after(1, 429), true).0, 2000);
        assert_eq!(range(&after(90, 429), false), (15_000, 30_000));
        assert_eq!(range(&after(90, 410), false), (2500, 5000));
    }

    #[test]
    fn a_document_brings_the_rhythm_back_and_giving_way_does_not_leave_it() {
        let mut pace = after(5, 503);
        pace.document();
        pace.failed(&NoInformation::GaveWay);
        assert_eq!(pace.wait(PollSlot::new(0, 3), Timestamp(400), false, 0), Duration::from_millis(600));
    }
}
