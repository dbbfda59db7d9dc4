//! Counters of refused callers on this machine. Each refusal is counted, and logged once a minute per caller and
//! reason.

use prometheus::{IntCounterVec, Opts, Registry};

use super::labels::RefusalKind;
use super::registration::registered;
use crate::net::limits::LogLimiter;

/// The number of letters after which a logged request is cut.
const SHOWN_LETTERS: usize = 120;

pub struct RefusalCounts {
    counts: IntCounterVec,
    /// The log limiters by reason: many unknown callers at a listener hide no caller at another listener.
    told: [LogLimiter; RefusalKind::ALL.len()],
}

impl RefusalCounts {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let opts = Opts::new(
            "allclear_access_refusals_total",
            "Calls, requests and connections that this replica refused on this machine and at the status port, by \
             place and reason.",
        );
        let counts = registered(registry, IntCounterVec::new(opts, &["door", "reason"])?)?;
        for each in RefusalKind::ALL {
            counts.with_label_values(&each.as_words());
        }
        Ok(Self { counts, told: Default::default() })
    }

    /// Counts a refusal logged elsewhere.
    pub fn count(&self, why: RefusalKind) {
        self.counts.with_label_values(&why.as_words()).inc();
    }

    /// Logs a refusal, then counts it: whoever sees the count finds the log line. `who` is a user or an address, the
    /// key of the log limit; `asked` is arbitrary input of the caller.
    pub fn note(&self, why: RefusalKind, who: &str, pid: Option<i32>, asked: &str) {
        let [door, reason] = why.as_words();
        if let Some(untold) = self.told[why as usize].is_due(who, reason) {
            let asked: String = asked.chars().flat_map(char::escape_default).take(SHOWN_LETTERS).collect();
            tracing::warn!(door, reason, who, pid, asked, untold, "call refused");
        }
        self.count(why);
    }
}
