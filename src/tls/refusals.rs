//! How many peers were refused and why, and the log lines about it: whoever knocks all the time is told of once a minute.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::refusal::Refusal;

const TOLD_EVERY: Duration = Duration::from_mins(1);
/// So many kinds of who and why are told of within that time; the others are counted.
const TOLD_AT_MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: [AtomicU64; Refusal::WORDS.len()],
    told: Mutex<Told>,
}

impl Refusals {
    pub(super) fn note(&self, who: &str, refusal: &Refusal) {
        self.counts[refusal.place()].fetch_add(1, Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(untold) = told.is_news(who, refusal.as_word(), Instant::now()) {
            tracing::warn!(who, reason = refusal.as_word(), why = %refusal, untold, "refused between replicas");
        }
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Refusal::WORDS.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// When each was told of last, and how often it came since.
#[derive(Debug, Default)]
struct Told(BTreeMap<(String, &'static str), (Instant, u64)>);

impl Told {
    /// How many like it went untold before, where it is time to tell of it.
    fn is_news(&mut self, who: &str, word: &'static str, now: Instant) -> Option<u64> {
        let is_old = |at: &Instant| now.saturating_duration_since(*at) >= TOLD_EVERY;
        let key = (who.to_owned(), word);
        if let Some((at, untold)) = self.0.get_mut(&key) {
            if !is_old(at) {
                *untold += 1;
                return None;
            }
            *at = now;
            return Some(std::mem::take(untold));
        }
        if self.0.len() >= TOLD_AT_MOST {
            self.0.retain(|_, (at, _)| !is_old(at));
        }
        if self.0.len() >= TOLD_AT_MOST {
            return None;
        }
        self.0.insert(key, (now, 0));
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_knocks_all_the_time_is_told_of_once_a_minute_with_how_often() {
        let (mut told, start) = (Told::default(), Instant::now());
        assert_eq!(told.is_news("10.0.0.9", "expired", start), Some(0));
        for second in 1..60 {
            assert_eq!(told.is_news("10.0.0.9", "expired", start + Duration::from_secs(second)), None);
        }
        assert_eq!(told.is_news("10.0.0.9", "plain_text", start), Some(0));
        assert_eq!(told.is_news("10.0.0.9", "expired", start + TOLD_EVERY), Some(59));
    }

    #[test]
    fn however_many_knock_the_log_and_the_memory_of_it_stay_small() {
        let (mut told, start) = (Told::default(), Instant::now());
        let lines = (0..10_000).filter(|who| told.is_news(&who.to_string(), "expired", start).is_some()).count();
        assert_eq!((lines, told.0.len()), (TOLD_AT_MOST, TOLD_AT_MOST));
        assert_eq!(told.is_news("another", "expired", start + TOLD_EVERY), Some(0));
        assert_eq!(told.0.len(), 1);
    }
}
