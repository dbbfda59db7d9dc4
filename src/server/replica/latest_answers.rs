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

/// The last finding of the `check` hooks of each configured workload: a fault, or none.
pub type LatestChecks = LatestAnswers<Option<CheckFault>>;

/// The reason why a `check` hook failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckFault {
    /// The time of the first check with a fault, whatever the fault.
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
