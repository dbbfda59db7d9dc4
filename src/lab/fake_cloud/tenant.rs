//! The state behind all endpoints: the cloud, and the faults of each VM's endpoint.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::fault::Switched;
use super::request_log::RequestLog;
use super::scenario::{CloudScenario, ScenarioError};
use allclear_cloud::{Cloud, PlatformBehaviour, Vm};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

/// Maximum number of planned or open events of one cloud: the capacity of a document.
const MOST_TO_END: usize = 1_000;
/// Maximum number of events, ended events included.
const MOST_EVENTS: usize = 20_000;

#[derive(Debug)]
pub(super) struct Tenant {
    /// The VMs' names, in the order of positions in scenarios.
    pub(super) vms: Vec<VmName>,
    pub(super) cloud: Cloud,
    pub(super) speed: NonZeroU32,
    pub(super) faults: BTreeMap<VmName, Vec<Switched>>,
    pub(super) requests: RequestLog,
    /// The events of the current scenario.
    pub(super) scenario: Vec<EventId>,
}

impl Tenant {
    pub(super) fn new(vms: Vec<VmName>, speed: NonZeroU32, log: RequestLog, now: Timestamp) -> Self {
        let seats = vms.iter().map(|name| Vm { name: name.clone(), zone: None });
        Self {
            cloud: Cloud::new(seats, PlatformBehaviour::default(), 1, now),
            faults: vms.iter().map(|vm| (vm.clone(), Vec::new())).collect(),
            vms,
            speed,
            requests: log,
            scenario: Vec::new(),
        }
    }

    /// Replaces the current scenario; the events of the previous scenario stay.
    pub(super) fn play(&mut self, scenario: &CloudScenario, now: Timestamp) -> Result<(), ScenarioError> {
        self.cloud.advance(now);
        if self.room() < scenario.len() {
            return Err(ScenarioError::Refused { name: scenario.name().to_owned(), reason: enough() });
        }
        self.scenario = scenario.begin(&mut self.cloud, &self.vms, self.speed, now)?;
        Ok(())
    }

    /// Number of further events that the cloud may have.
    pub(super) fn room(&self) -> usize {
        let (known, planned) = (self.cloud.events().len(), self.cloud.planned());
        let open = self.cloud.events().iter().filter(|event| event.ended.is_none()).count();
        MOST_TO_END.saturating_sub(open + planned).min(MOST_EVENTS.saturating_sub(known + planned))
    }

    /// Whether all events of the current scenario are over.
    pub(super) fn is_over(&self) -> bool {
        let ended = |id| self.cloud.event(id).is_some_and(|event| event.ended.is_some());
        !self.scenario.is_empty() && self.scenario.iter().all(ended)
    }

    /// The first fault for this request; the fault's count is reduced by one.
    pub(super) fn take_fault(&mut self, vm: &VmName, is_post: bool) -> Option<Switched> {
        let faults = self.faults.get_mut(vm)?;
        let place = faults.iter().position(|switched| switched.is_for(is_post))?;
        let switched = faults.get_mut(place)?;
        switched.times = switched.times.map(|times| times.saturating_sub(1));
        let taken = switched.clone();
        if taken.times == Some(0) {
            faults.remove(place);
        }
        Some(taken)
    }
}

/// The error text at the maximum number of events.
pub(super) fn enough() -> String {
    format!(
        "{MOST_TO_END} events that have not ended are enough, and {MOST_EVENTS} of all; wait for the end of some, or \
         start another cloud"
    )
}

#[cfg(test)]
mod tests {
    use super::super::fault::{FaultRule, On};
    use super::*;

    #[test]
    fn faults_are_used_up_in_the_order_in_which_they_were_set() {
        let vm = VmName::new("a");
        let mut tenant = Tenant::new(vec![vm.clone()], NonZeroU32::MIN, RequestLog::default(), Timestamp(0));
        let of = |fault, on, times| Switched { fault, on, times, stale: None };
        tenant.faults.get_mut(&vm).unwrap().extend([
            of(FaultRule::Empty, On::Get, Some(1)),
            of(FaultRule::Hang, On::Post, Some(1)),
            of(FaultRule::Stale, On::Post, None),
            of(FaultRule::Html, On::Both, None),
        ]);
        let mut taken = |is_post| tenant.take_fault(&vm, is_post).map(|switched| switched.fault);
        assert_eq!(taken(false), Some(FaultRule::Empty));
        assert_eq!(taken(false), Some(FaultRule::Html));
        assert_eq!(taken(true), Some(FaultRule::Hang));
        assert_eq!(taken(true), Some(FaultRule::Html), "a document that is stale is no matter of a POST");
    }
}
