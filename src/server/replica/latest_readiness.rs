//! The last readiness of each workload on this VM.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::Readiness;

/// The last answer of each workload of this VM, also while the log does not record answers.
#[derive(Default)]
pub struct LatestReadiness(Mutex<BTreeMap<WorkloadName, Readiness>>);

impl LatestReadiness {
    pub(super) fn all(&self) -> BTreeMap<WorkloadName, Readiness> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn keep(&self, workload: &WorkloadName, readiness: Readiness) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(workload.clone(), readiness);
    }
}
