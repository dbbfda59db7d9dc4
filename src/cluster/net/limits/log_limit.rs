//! Logs each client at most once a minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::listener::ClientKey;

const TOLD_EVERY: Duration = Duration::from_mins(1);
/// The maximum of pairs of client and reason logged within that time; further pairs are not logged.
const TOLD_AT_MOST: usize = 64;

/// The client and the reason.
type Kind = (String, &'static str);

/// The time of the last log message for each pair, and the number of occurrences since.
#[derive(Debug, Default)]
pub struct LogLimiter(Mutex<BTreeMap<Kind, (Instant, u64)>>);

impl LogLimiter {
    /// The number of similar occurrences not logged before, if a log message is due.
    pub fn is_due(&self, who: &str, word: &'static str) -> Option<u64> {
        self.is_due_at(who, word, Instant::now())
    }

    fn is_due_at(&self, who: &str, word: &'static str, now: Instant) -> Option<u64> {
        let is_old = |at: &Instant| now.saturating_duration_since(*at) >= TOLD_EVERY;
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (who.to_owned(), word);
        if let Some((at, untold)) = told.get_mut(&key) {
            if !is_old(at) {
                *untold += 1;
                return None;
            }
            *at = now;
            return Some(std::mem::take(untold));
        }
        if told.len() >= TOLD_AT_MOST {
            told.retain(|_, (at, _)| !is_old(at));
        }
        if told.len() >= TOLD_AT_MOST {
            return None;
        }
        told.insert(key, (now, 0));
        Some(0)
    }
}

/// Logs the rejected clients of one listener.
pub struct RejectionLog {
    door: &'static str,
    told: LogLimiter,
    count: Box<dyn Fn() + Send + Sync>,
}

impl RejectionLog {
    /// `door` is the listener's name in the configuration.
    pub fn at(door: &'static str) -> Self {
        Self { door, told: LogLimiter::default(), count: Box::new(|| {}) }
    }

    /// Adds a counter of clients rejected because of a limit.
    #[must_use]
    pub fn counted(self, count: impl Fn() + Send + Sync + 'static) -> Self {
        Self { count: Box::new(count), ..self }
    }

    pub(super) fn no_place(&self, who: ClientKey) {
        self.note(who, "the client has too many connections open, or all clients together have");
        (self.count)();
    }

    pub(super) fn note(&self, who: ClientKey, why: &'static str) {
        if let Some(untold) = self.told.is_due(&who.to_string(), why) {
            tracing::warn!(door = self.door, %who, why, untold, "connection rejected");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_knocks_all_the_time_is_told_of_once_a_minute_with_how_often() {
        let (told, start) = (LogLimiter::default(), Instant::now());
        assert_eq!(told.is_due_at("10.0.0.9", "expired", start), Some(0));
        for second in 1..60 {
            assert_eq!(told.is_due_at("10.0.0.9", "expired", start + Duration::from_secs(second)), None);
        }
        assert_eq!(told.is_due_at("10.0.0.9", "plain_text", start), Some(0));
        assert_eq!(told.is_due_at("10.0.0.9", "expired", start + TOLD_EVERY), Some(59));
    }

    #[test]
    fn however_many_knock_the_log_and_the_memory_of_it_stay_small() {
        let (told, start) = (LogLimiter::default(), Instant::now());
        let kept = || told.0.lock().unwrap().len();
        let lines = (0..10_000).filter(|who| told.is_due_at(&who.to_string(), "expired", start).is_some()).count();
        assert_eq!((lines, kept()), (TOLD_AT_MOST, TOLD_AT_MOST));
        assert_eq!(told.is_due_at("another", "expired", start + TOLD_EVERY), Some(0));
        assert_eq!(kept(), 1);
    }
}
