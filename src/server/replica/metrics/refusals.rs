//! Who was refused on this machine: each is counted, and told of in the log, once a minute for each who and why.

use prometheus::{IntCounterVec, Opts, Registry};

use super::labels::RefusalKind;
use super::registration::registered;
use crate::net::limits::LogLimiter;

/// What somebody asked for is cut behind so many letters.
const SHOWN_LETTERS: usize = 120;

pub struct RefusalCounts {
    counts: IntCounterVec,
    /// Of each reason: many strangers at one door hide nobody at another.
    told: [LogLimiter; RefusalKind::ALL.len()],
}

impl RefusalCounts {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let opts = Opts::new(
            "allclear_access_refusals_total",
            "Calls, requests and connections that were refused on this machine and at the status port, by where and why.",
        );
        let counts = registered(registry, IntCounterVec::new(opts, &["door", "reason"])?)?;
        for each in RefusalKind::ALL {
            counts.with_label_values(&each.as_words());
        }
        Ok(Self { counts, told: Default::default() })
    }

    /// One who is told of elsewhere.
    pub fn count(&self, why: RefusalKind) {
        self.counts.with_label_values(&why.as_words()).inc();
    }

    /// `who` is a user or an address, by which it is told how often; `asked` is whatever somebody sent.
    pub fn note(&self, why: RefusalKind, who: &str, pid: Option<i32>, asked: &str) {
        self.count(why);
        let [door, reason] = why.as_words();
        if let Some(untold) = self.told[why as usize].is_due(who, reason) {
            let asked: String = asked.chars().flat_map(char::escape_default).take(SHOWN_LETTERS).collect();
            tracing::warn!(door, reason, who, pid, asked, untold, "call refused");
        }
    }
}
