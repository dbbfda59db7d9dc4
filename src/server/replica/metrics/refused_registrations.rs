//! The refused registrations of session workloads on this VM, until each workload is registered or gives up.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::latest_answers::Fault;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::time::Timestamp;

/// A workload that is not refused again for this duration has given up. The clients try again after at most 30 s.
const OVER_AFTER: Duration = Duration::from_mins(5);
/// The names come from callers, so their number has a limit.
const MOST: usize = 10;
/// The length of a kept reason, in characters.
const KEPT_LETTERS: usize = 300;

/// By name, the fault and the time of the last refusal.
#[derive(Default)]
pub struct RefusedRegistrations(Mutex<BTreeMap<WorkloadName, (Fault, Timestamp)>>);

impl RefusedRegistrations {
    pub fn note(&self, workload: &WorkloadName, why: &str) {
        let (now, mut known) = (clock::now(), self.known());
        known.retain(|_, (_, last)| now.since(*last) < OVER_AFTER);
        let since = known.get(workload).map_or(now, |(fault, _)| fault.since);
        if known.len() < MOST || known.contains_key(workload) {
            let why = why.chars().take(KEPT_LETTERS).collect();
            known.insert(workload.clone(), (Fault { since, why }, now));
        }
    }

    /// Records that the workload is registered.
    pub fn end(&self, workload: &WorkloadName) {
        self.known().remove(workload);
    }

    pub fn all(&self) -> Vec<(WorkloadName, Fault)> {
        let now = clock::now();
        let known = self.known();
        let present = known.iter().filter(|(_, (_, last))| now.since(*last) < OVER_AFTER);
        present.map(|(name, (fault, _))| (name.clone(), fault.clone())).collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<WorkloadName, (Fault, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_since_the_first_until_the_workload_is_registered_and_many_names_are_bounded() {
        let (refused, orders) = (RefusedRegistrations::default(), WorkloadName("orders".into()));
        refused.note(&orders, "no such group");
        let [(_, first)] = &refused.all()[..] else { panic!("not told") };
        refused.note(&orders, &"x".repeat(1000));
        let [(name, second)] = &refused.all()[..] else { panic!("not told once") };
        assert_eq!((name, second.since, second.why.len()), (&orders, first.since, KEPT_LETTERS));
        for number in 0..100 {
            refused.note(&WorkloadName(format!("w{number}")), "no such group");
        }
        assert_eq!(refused.all().len(), MOST);
        refused.end(&orders);
        assert!(refused.all().iter().all(|(name, _)| *name != orders));
    }
}
