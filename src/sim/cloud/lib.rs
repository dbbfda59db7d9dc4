//! The platform: VMs, their announced events, and the course of those events.
//!
//! A state machine on virtual time: every call names the time, and everything due earlier happens first, ordered by
//! time. The encoding of a document and failed requests are the concern of `fake_cloud`. The platform reads no clock:
//! equal calls give an equal history.

mod approval;
mod due;
mod event;
mod guid;
mod history;
mod orders;
mod plan;
pub mod random;
mod seat;

use std::collections::BTreeMap;

pub use approval::{ApprovalEffect, Approver};
pub use event::{EventEnd, PlatformEvent, PlatformStartCause};
pub use history::{HistoryEntry, PlatformOccurrence};
pub use orders::{Amendment, OrderError};
pub use plan::{Audience, EventPlan, Opening, Relapse, ScheduleMove, When};
pub use seat::{Notice, PlatformBehaviour, Vm};

use crate::random::Random;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

/// One tenant's machines and the events about them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cloud {
    manners: PlatformBehaviour,
    ids: Random,
    now: Timestamp,
    seats: BTreeMap<VmName, seat::VmState>,
    /// Every event ever announced, in the order of the announcements; ended events stay, because late approvals name
    /// them.
    events: Vec<PlatformEvent>,
    /// Announced when their time comes.
    pending: Vec<due::PendingEvent>,
    history: Vec<HistoryEntry>,
}

impl Cloud {
    /// A quiet platform. The seed decides the ids of its events and nothing else.
    pub fn new(vms: impl IntoIterator<Item = Vm>, manners: PlatformBehaviour, seed: u64, now: Timestamp) -> Self {
        let seats = vms.into_iter().map(|vm| (vm.name.clone(), seat::VmState::new(vm, &manners))).collect();
        Self {
            manners,
            ids: Random::new(seed),
            now,
            seats,
            events: Vec::new(),
            pending: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Plans an announcement. The id is known at once, so that a later event can wait for the end of this event.
    pub fn schedule(&mut self, now: Timestamp, when: When, plan: EventPlan) -> Result<EventId, OrderError> {
        self.advance(now);
        let id = match &plan.id {
            Some(id) if self.is_taken(id) => return Err(OrderError::IdTaken(id.clone())),
            Some(id) => id.clone(),
            None => guid::event_id(&mut self.ids),
        };
        if let When::After { event, .. } = &when
            && !self.is_taken(event)
        {
            return Err(OrderError::Unknown(event.clone()));
        }
        self.pending.push(due::PendingEvent { id: id.clone(), when, plan });
        self.settle();
        Ok(id)
    }

    /// Announces an event now.
    pub fn announce(&mut self, now: Timestamp, plan: EventPlan) -> Result<EventId, OrderError> {
        self.schedule(now, When::At(now), plan)
    }

    /// Executes every step due by `now`. Time that runs backwards is ignored.
    pub fn advance(&mut self, now: Timestamp) {
        let until = self.now.max(now);
        while let Some((at, step)) = due::next(&self.events, &self.pending) {
            if at > until {
                break;
            }
            // The obstacle of a step may have ended only now: the step happens now, not at its earlier time.
            self.now = self.now.max(at);
            self.take(step);
            self.refresh();
        }
        self.now = until;
        self.refresh();
    }

    /// The time of the next automatic change, if no request comes before.
    pub fn next_change(&self) -> Option<Timestamp> {
        due::next(&self.events, &self.pending).map(|(at, _)| at)
    }

    /// An announced event, open or ended.
    pub fn event(&self, id: &EventId) -> Option<&PlatformEvent> {
        self.events.iter().find(|event| event.id == *id)
    }

    /// Every announced event, in the order of the announcements.
    pub fn events(&self) -> &[PlatformEvent] {
        &self.events
    }

    /// The complete history, in the order of time.
    pub fn history(&self) -> &[HistoryEntry] {
        &self.history
    }

    /// Planned events without an announcement yet.
    pub fn planned(&self) -> usize {
        self.pending.len()
    }

    /// The VMs, ordered by name.
    pub fn vms(&self) -> impl Iterator<Item = &Vm> {
        self.seats.values().map(|seat| &seat.vm)
    }

    /// Whether an event interrupts the VM at this moment.
    pub fn is_impacted(&self, vm: &VmName) -> bool {
        self.events.iter().any(|event| event.plan.resources.contains(vm) && event.is_impacting(self.now))
    }

    fn is_taken(&self, id: &EventId) -> bool {
        self.event(id).is_some() || self.pending.iter().any(|pending| pending.id == *id)
    }

    fn settle(&mut self) {
        self.advance(self.now);
    }

    fn take(&mut self, step: due::DueStep) {
        match step {
            due::DueStep::Announce(ordinal) => {
                let pending = self.pending.remove(ordinal);
                let event = PlatformEvent::announced(pending.id, pending.plan, self.now);
                self.history.push(HistoryEntry {
                    at: self.now,
                    event: event.id.clone(),
                    what: PlatformOccurrence::Announced,
                });
                self.events.push(event);
            }
            due::DueStep::Change(ordinal, change) => self.apply_change(ordinal, change),
        }
    }

    fn apply_change(&mut self, ordinal: usize, change: due::PlatformChange) {
        let Some(event) = self.events.get_mut(ordinal) else { return };
        let what = event.change(self.now, change);
        self.history.push(HistoryEntry { at: self.now, event: event.id.clone(), what });
    }
}
