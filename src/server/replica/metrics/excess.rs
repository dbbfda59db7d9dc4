//! What the metadata endpoint says beyond what a replica keeps of it, or takes into the log: counted, and told of once when
//! it begins.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::{IntCounterVec, Opts, Registry};

use super::registration::registered;
use crate::replica::clock;
use allclear_core::model::time::Timestamp;

/// What was not seen for so long is over.
const OVER_AFTER: Duration = Duration::from_mins(5);

const LEFT_OUT: &str = "left_out";
const WAITED: &str = "waited";

pub struct Excess {
    counts: IntCounterVec,
    kinds: Mutex<[Option<ExcessSpan>; 2]>,
}

/// Since when it goes on, and when it was last so.
#[derive(Clone, Copy)]
struct ExcessSpan {
    since: Timestamp,
    last: Timestamp,
}

impl Excess {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let opts = Opts::new(
            "allclear_metadata_excess_total",
            "What the metadata endpoint said beyond what is kept: `left_out` events for which a report has no room, and \
             `waited` times a report had to wait because there was too much to report before it.",
        );
        let counts = registered(registry, IntCounterVec::new(opts, &["result"])?)?;
        for kind in [LEFT_OUT, WAITED] {
            counts.with_label_values(&[kind]);
        }
        Ok(Self { counts, kinds: Mutex::default() })
    }

    /// So many events of what the endpoint listed were left out.
    pub fn left_out(&self, events: usize) {
        if events > 0 {
            self.counts.with_label_values(&[LEFT_OUT]).inc_by(events as u64);
            if self.note(0) {
                tracing::warn!(events, "document over its limit: some events left out");
            }
        }
    }

    /// Whether a report has to wait.
    pub fn waits(&self, waits: bool) {
        if waits {
            self.counts.with_label_values(&[WAITED]).inc();
            if self.note(1) {
                tracing::warn!("reports of documents delayed: the metadata service changes them too often");
            }
        }
    }

    /// Since when each goes on, in this order; `None` where it does not.
    pub fn since(&self) -> [Option<Timestamp>; 2] {
        let now = clock::now();
        self.kinds().map(|seen| seen.filter(|seen| now.since(seen.last) < OVER_AFTER).map(|seen| seen.since))
    }

    /// True when it begins.
    fn note(&self, kind: usize) -> bool {
        let now = clock::now();
        let mut kinds = self.kinds();
        let Some(seen) = kinds.get_mut(kind) else { return false };
        let known = seen.filter(|seen| now.since(seen.last) < OVER_AFTER);
        *seen = Some(ExcessSpan { since: known.map_or(now, |known| known.since), last: now });
        known.is_none()
    }

    fn kinds(&self) -> MutexGuard<'_, [Option<ExcessSpan>; 2]> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
