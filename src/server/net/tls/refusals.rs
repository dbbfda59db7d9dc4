//! How many peers were refused and why, and the log lines about it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::refusal::Refusal;
use crate::net::limits::Told;

#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: [AtomicU64; Refusal::WORDS.len()],
    told: Told,
}

impl Refusals {
    pub(super) fn note(&self, who: &str, refusal: &Refusal) {
        self.counts[refusal.place()].fetch_add(1, Ordering::Relaxed);
        if let Some(untold) = self.told.is_news(who, refusal.as_word()) {
            tracing::warn!(who, reason = refusal.as_word(), why = %refusal, untold, "refused between replicas");
        }
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Refusal::WORDS.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}
