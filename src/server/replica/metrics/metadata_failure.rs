//! The reason why this replica receives no documents, for its status.

use std::sync::{Mutex, PoisonError};

use crate::clock;
use allclear_core::model::time::Timestamp;

#[derive(Default)]
pub struct MetadataFailure(Mutex<Option<(Timestamp, String)>>);

impl MetadataFailure {
    /// Records the reason of a failed poll without a recent document.
    pub fn note(&self, why: String) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = known.as_ref().map_or_else(clock::now, |(since, _)| *since);
        *known = Some((since, why));
    }

    /// Records a document.
    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The last reason, with the time of the first failure.
    pub fn known(&self) -> Option<(Timestamp, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
