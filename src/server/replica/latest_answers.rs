//! The last answers of the workloads on this VM, also while the log does not record answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use allclear_core::model::id::WorkloadName;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Readiness, Role};

/// The last readiness of each workload.
pub(super) type LatestReadiness = LatestAnswers<Readiness>;

/// The last role of each configured workload.
pub type LatestRoles = LatestAnswers<Role>;

/// For each configured workload a fault, or none: of its `check` hooks, or of its role.
pub type LatestFaults = LatestAnswers<Option<Fault>>;

/// The reason why a `check` hook failed, or why a role is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The time of the first fault in a row, whatever its reason.
    pub since: Timestamp,
    pub why: String,
}

pub struct LatestAnswers<T>(Mutex<BTreeMap<WorkloadName, T>>);

impl<T> Default for LatestAnswers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> LatestAnswers<T> {
    pub(super) fn all(&self) -> BTreeMap<WorkloadName, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn keep(&self, workload: &WorkloadName, answer: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(workload.clone(), answer);
    }
}
