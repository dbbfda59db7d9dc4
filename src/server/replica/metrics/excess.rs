//! Counters of what the metadata endpoint lists beyond the amount that a replica keeps, or takes into the log. Each
//! excess is logged once when the excess begins.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::{IntCounterVec, Opts, Registry};

use super::registration::registered;
use crate::clock;
use allclear_core::model::time::Timestamp;

/// An excess not seen for this duration is over.
const OVER_AFTER: Duration = Duration::from_mins(5);

const LEFT_OUT: &str = "left_out";
const WAITED: &str = "waited";

pub struct Excess {
    counts: IntCounterVec,
    kinds: Mutex<[Option<ExcessSpan>; 2]>,
}

/// The beginning and the last sight of an excess.
#[derive(Clone, Copy)]
struct ExcessSpan {
    since: Timestamp,
    last: Timestamp,
}

impl Excess {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let opts = Opts::new(
            "allclear_metadata_excess_total",
            "Content of the metadata endpoint above the limits: `left_out` events without room in a report, and \
             `waited` delays of a report after too many earlier reports.",
        );
        let counts = registered(registry, IntCounterVec::new(opts, &["result"])?)?;
        for kind in [LEFT_OUT, WAITED] {
            counts.with_label_values(&[kind]);
        }
        Ok(Self { counts, kinds: Mutex::default() })
    }

    /// Counts events left out of the endpoint's list.
    pub fn left_out(&self, events: usize) {
        if events > 0 {
            self.counts.with_label_values(&[LEFT_OUT]).inc_by(events as u64);
            if self.note(0) {
                tracing::warn!(events, "document over its limit: events left out");
            }
        }
    }

    /// Records whether a report has to wait.
    pub fn waits(&self, waits: bool) {
        if waits {
            self.counts.with_label_values(&[WAITED]).inc();
            if self.note(1) {
                tracing::warn!("reports of documents delayed: the metadata service changes the document too often");
            }
        }
    }

    /// The beginning of each excess, in this order; `None` without a present excess.
    pub fn since(&self) -> [Option<Timestamp>; 2] {
        let now = clock::now();
        self.kinds().map(|seen| seen.filter(|seen| now.since(seen.last) < OVER_AFTER).map(|seen| seen.since))
    }

    /// True when the excess begins.
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
