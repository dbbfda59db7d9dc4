//! The state behind all endpoints: the cloud, and for each VM what is wrong with its endpoint and how it writes.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::fault::{Errand, Fault, Switched};
use super::habits::Habits;
use super::request_log::RequestLog;
use super::scenario::{Scenario, ScenarioError};
use crate::machine::id::{EventId, VmName};
use crate::machine::time::Timestamp;
use crate::simulator::cloud::{Cloud, Manners, Vm};

/// The vendor's limit on requests of one VM, and the time it is counted over.
const REQUESTS_PER_SECOND: usize = 5;
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// Events of one cloud that are planned or open: as many as a document may have.
const MOST_TO_END: usize = 1_000;
/// The ended ones too; a reset forgets them.
const MOST_EVENTS: usize = 20_000;

/// How many approvals stay in memory.
const APPROVALS_KEPT: usize = 10_000;

/// What one VM's endpoint is like.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) faults: Vec<Switched>,
    pub(super) habits: Habits,
    /// When the latest requests came, at most as many as the limit.
    recent: VecDeque<Timestamp>,
    /// Tells the VM's port whether to refuse connections.
    pub(super) refused: watch::Sender<bool>,
}

/// One approval, by whomever.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ApprovalEntry {
    pub(super) at: String,
    pub(super) event: String,
    pub(super) by: String,
    pub(super) result: &'static str,
}

/// The scenario under way.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) began_at: Timestamp,
    pub(super) events: Vec<EventId>,
}

#[derive(Debug)]
pub(super) struct Tenant {
    /// In the order in which scenarios count them.
    pub(super) vms: Vec<VmName>,
    pub(super) cloud: Cloud,
    pub(super) speed: NonZeroU32,
    pub(super) desks: BTreeMap<VmName, Desk>,
    pub(super) requests: RequestLog,
    pub(super) approvals: VecDeque<ApprovalEntry>,
    pub(super) play: Option<Play>,
    id_seed: u64,
}

impl Tenant {
    pub(super) fn new(vms: Vec<VmName>, speed: NonZeroU32, id_seed: u64, log: RequestLog, now: Timestamp) -> Self {
        Self {
            cloud: quiet(&vms, id_seed, now),
            desks: vms.iter().map(|vm| (vm.clone(), Desk::default())).collect(),
            vms,
            speed,
            requests: log,
            approvals: VecDeque::new(),
            play: None,
            id_seed,
        }
    }

    /// As it was in the beginning, but for the seed: ids of events are never used again.
    pub(super) fn reset(&mut self, now: Timestamp) {
        self.id_seed = self.id_seed.wrapping_add(1);
        self.cloud = quiet(&self.vms, self.id_seed, now);
        for desk in self.desks.values_mut() {
            desk.habits = Habits::default();
            desk.recent.clear();
            desk.clear_faults();
        }
        self.requests.forget();
        self.approvals.clear();
        self.play = None;
    }

    /// Takes the place of the scenario under way; that one's events stay.
    pub(super) fn play(&mut self, scenario: &Scenario, now: Timestamp) -> Result<(), ScenarioError> {
        self.cloud.advance(now);
        if self.room() < scenario.len() {
            return Err(ScenarioError::Refused { name: scenario.name().to_owned(), reason: enough() });
        }
        let events = scenario.begin(&mut self.cloud, &self.vms, self.speed, now)?;
        let (name, about) = (scenario.name().to_owned(), scenario.about().to_owned());
        self.play = Some(Play { name, about, began_at: now, events });
        Ok(())
    }

    /// How many more events the cloud may have.
    pub(super) fn room(&self) -> usize {
        let (known, planned) = (self.cloud.events().len(), self.cloud.planned());
        let open = self.cloud.events().iter().filter(|event| event.ended.is_none()).count();
        MOST_TO_END.saturating_sub(open + planned).min(MOST_EVENTS.saturating_sub(known + planned))
    }

    /// Whether all events of the scenario under way have come and gone.
    pub(super) fn is_over(&self) -> bool {
        let ended = |id| self.cloud.event(id).is_some_and(|event| event.ended.is_some());
        self.play.as_ref().is_some_and(|play| play.events.iter().all(ended))
    }

    pub(super) fn position_of(&self, vm: &VmName) -> usize {
        self.vms.iter().position(|candidate| candidate == vm).unwrap_or(0)
    }

    pub(super) fn note_approval(&mut self, entry: ApprovalEntry) {
        self.approvals.push_back(entry);
        if self.approvals.len() > APPROVALS_KEPT {
            self.approvals.pop_front();
        }
    }
}

impl Desk {
    /// Counts a request; false when the VM asks too often.
    pub(super) fn admits(&mut self, now: Timestamp) -> bool {
        if !self.habits.rate_limit {
            return true;
        }
        while self.recent.front().is_some_and(|earlier| now.since(*earlier) >= RATE_WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.len() >= REQUESTS_PER_SECOND {
            return false;
        }
        self.recent.push_back(now);
        true
    }

    /// The fault for this request, the first that fits; it is used up by one.
    pub(super) fn take_fault(&mut self, errand: Errand) -> Option<Switched> {
        let place = self.faults.iter().position(|switched| switched.is_for(errand))?;
        let switched = self.faults.get_mut(place)?;
        switched.times = switched.times.map(|times| times.saturating_sub(1));
        let taken = switched.clone();
        if taken.times == Some(0) {
            self.faults.remove(place);
        }
        Some(taken)
    }

    pub(super) fn set_fault(&mut self, switched: Switched) {
        self.faults.push(switched);
        self.show_refusal();
    }

    pub(super) fn clear_faults(&mut self) {
        self.faults.clear();
        self.show_refusal();
    }

    fn show_refusal(&mut self) {
        let refused = self.faults.iter().any(|switched| switched.fault == Fault::Refused);
        self.refused.send_if_modified(|shown| std::mem::replace(shown, refused) != refused);
    }
}

/// Why there is no room.
pub(super) fn enough() -> String {
    format!(
        "{MOST_TO_END} events that have not ended are enough, and {MOST_EVENTS} of all; reset the cloud to forget them"
    )
}

fn quiet(vms: &[VmName], id_seed: u64, now: Timestamp) -> Cloud {
    Cloud::new(vms.iter().map(|name| Vm { name: name.clone(), zone: None }), Manners::default(), id_seed, now)
}

#[cfg(test)]
mod tests {
    use super::super::fault::On;
    use super::*;

    #[test]
    fn the_sixth_request_within_a_second_is_one_too_many() {
        let mut desk = Desk::default();
        desk.habits.rate_limit = true;
        let admitted: Vec<bool> =
            [0, 10, 20, 30, 40, 50, 999, 1_000, 1_001, 1_010].map(|at| desk.admits(Timestamp(at))).into();
        assert_eq!(admitted, [true, true, true, true, true, false, false, true, false, true]);
    }

    #[test]
    fn faults_are_used_up_in_the_order_in_which_they_were_set() {
        let mut desk = Desk::default();
        let of = |fault, on, times| Switched { fault, on, times, stale: None };
        desk.set_fault(of(Fault::Empty, On::Get, Some(1)));
        desk.set_fault(of(Fault::Hang, On::Post, Some(1)));
        desk.set_fault(of(Fault::Html, On::Both, None));
        let mut taken = |errand| desk.take_fault(errand).map(|switched| switched.fault);
        assert_eq!(taken(Errand::Get), Some(Fault::Empty));
        assert_eq!(taken(Errand::Get), Some(Fault::Html));
        assert_eq!(taken(Errand::Instance), None);
        assert_eq!(taken(Errand::Post), Some(Fault::Hang));
        assert_eq!(taken(Errand::Post), Some(Fault::Html));
    }
}
