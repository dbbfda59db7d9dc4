//! The reason why this replica receives no documents, for its status.

use std::sync::{Mutex, PoisonError};

use crate::clock;
use allclear_core::model::time::Timestamp;

#[derive(Default)]
pub struct MetadataFailure(Mutex<Option<Failure>>);

#[derive(Clone)]
struct Failure {
    /// The first failed poll since the last document.
    since: Timestamp,
    /// The reason of the last failed poll.
    why: String,
    /// The last document is too old to count.
    is_stalled: bool,
}

impl MetadataFailure {
    /// Records a failed poll.
    pub fn note(&self, why: String, is_stalled: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = known.as_ref().map_or_else(clock::now, |known| known.since);
        *known = Some(Failure { since, why, is_stalled });
    }

    /// Records a document.
    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The last reason since the last document.
    pub fn why(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|known| known.why.clone())
    }

    /// The last reason, with the time of the first failure; `None` while the last document still counts.
    pub fn known(&self) -> Option<(Timestamp, String)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.filter(|known| known.is_stalled).map(|known| (known.since, known.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_from_its_first_poll_and_is_told_when_the_last_document_is_too_old() {
        let failure = MetadataFailure::default();
        let before = clock::now();
        failure.note("403".into(), false);
        assert_eq!((failure.known(), failure.why().as_deref()), (None, Some("403")));
        let after = clock::now();
        while clock::now() == after {}
        failure.note("502".into(), true);
        let (since, why) = failure.known().unwrap();
        assert!(since >= before && since <= after && why == "502");
        failure.end();
        assert_eq!((failure.known(), failure.why()), (None, None));
    }
}
