//! Counts and logs failed handshakes.

use std::sync::atomic::{AtomicU64, Ordering};

use super::handshake_error::HandshakeError;
use crate::net::limits::LogLimiter;

#[derive(Debug, Default)]
pub(super) struct HandshakeErrors {
    counts: [AtomicU64; HandshakeError::NAMES.len()],
    told: LogLimiter,
}

impl HandshakeErrors {
    /// Logs first: whoever sees the count finds the log line.
    pub(super) fn note(&self, who: &str, refusal: &HandshakeError) {
        if let Some(untold) = self.told.is_due(who, refusal.as_str()) {
            tracing::warn!(who, reason = refusal.as_str(), why = %refusal, untold, "handshake between replicas refused");
        }
        self.counts[refusal.place()].fetch_add(1, Ordering::Release);
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        HandshakeError::NAMES.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Acquire)))
    }
}
