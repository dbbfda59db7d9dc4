//! Limits a rate: a burst, and an amount for each second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub struct RateLimiter {
    /// The time for one unit.
    each: Duration,
    /// The time by which use may run ahead of the clock.
    ahead: Duration,
    taken_until: Instant,
}

impl RateLimiter {
    pub fn new(at_once: u32, a_second: u32) -> Self {
        let each = Duration::from_secs(1) / a_second;
        Self { each, ahead: each * at_once, taken_until: Instant::now() }
    }

    /// False above the rate.
    pub fn take(&mut self) -> bool {
        self.wait(1, Duration::ZERO).is_some()
    }

    /// The wait for `count` units. `None`, with nothing taken, if the wait exceeds `at_most`.
    pub fn wait(&mut self, count: u32, at_most: Duration) -> Option<Duration> {
        self.wait_at(Instant::now(), count, at_most)
    }

    fn wait_at(&mut self, now: Instant, count: u32, at_most: Duration) -> Option<Duration> {
        let until = self.taken_until.max(now) + self.each * count;
        let wait = until.saturating_duration_since(now).saturating_sub(self.ahead);
        if wait > at_most {
            return None;
        }
        self.taken_until = until;
        Some(wait)
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.taken_until <= now
    }
}

/// The number of remembered clients, unless more clients are busy.
const REMEMBERED: usize = 256;

/// One rate limiter for each client.
pub struct RateLimiters<W> {
    at_once: u32,
    a_second: u32,
    each: Mutex<BTreeMap<W, Arc<Mutex<RateLimiter>>>>,
}

impl<W: Ord> RateLimiters<W> {
    pub fn new(at_once: u32, a_second: u32) -> Self {
        Self { at_once, a_second, each: Mutex::default() }
    }

    pub fn of(&self, who: W) -> Arc<Mutex<RateLimiter>> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if each.len() >= REMEMBERED {
            let now = Instant::now();
            each.retain(|_, pace| !pace.lock().unwrap_or_else(PoisonError::into_inner).is_idle(now));
        }
        each.entry(who).or_insert_with(|| Arc::new(Mutex::new(RateLimiter::new(self.at_once, self.a_second)))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_a_second() {
        let mut pace = RateLimiter::new(3, 2);
        let begin = pace.taken_until;
        let mut granted = |ms| {
            let now = begin + Duration::from_millis(ms);
            (0..10).filter(|_| pace.wait_at(now, 1, Duration::ZERO).is_some()).count()
        };
        assert_eq!([granted(0), granted(499), granted(500), granted(1500), granted(60_000)], [3, 0, 1, 2, 3]);
    }

    #[test]
    fn what_is_too_much_waits_its_turn_and_what_would_wait_too_long_takes_none() {
        let mut pace = RateLimiter::new(2, 10);
        let (now, at_most) = (pace.taken_until, Duration::from_millis(250));
        let waits: Vec<_> = (0..6).map(|_| pace.wait_at(now, 1, at_most).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(0), Some(0), Some(100), Some(200), None, None]);
        assert_eq!(pace.wait_at(now + Duration::from_millis(100), 1, at_most), Some(Duration::from_millis(200)));
    }

    #[test]
    fn of_many_who_asked_once_few_are_remembered() {
        let paces = RateLimiters::new(1, 1000);
        for who in 0..10_000_u32 {
            paces.of(who);
        }
        assert!(paces.each.into_inner().is_ok_and(|each| each.len() <= REMEMBERED));
    }
}
