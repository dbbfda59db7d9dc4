//! The platform: VMs, the events it announces for them, and what becomes of those events.
//!
//! A state machine on virtual time: every call says what time it is, and everything that fell due before happens
//! first, in the order of time. It refuses to know how a document looks on the wire, or which requests went wrong
//! (`fake_cloud`), and it reads no clock: the same calls give the same history.

mod approval;
mod due;
mod event;
mod guid;
mod history;
mod orders;
mod plan;
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
    /// Every event ever announced, in that order; ended ones stay, because late approvals name them.
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

    /// Plans an announcement. The id is known at once, so that a later event can wait for this one to end.
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

    /// Lets everything happen that is due by `now`. Time that runs backwards is ignored.
    pub fn advance(&mut self, now: Timestamp) {
        let until = self.now.max(now);
        while let Some((at, step)) = due::next(&self.events, &self.pending) {
            if at > until {
                break;
            }
            // What held a step back may have gone only now: it happens now, not when it would have.
            self.now = self.now.max(at);
            self.take(step);
            self.refresh();
        }
        self.now = until;
        self.refresh();
    }

    /// When the next thing happens by itself, if nobody asks for anything until then.
    pub fn next_change(&self) -> Option<Timestamp> {
        due::next(&self.events, &self.pending).map(|(at, _)| at)
    }

    /// An event that was announced, open or ended.
    pub fn event(&self, id: &EventId) -> Option<&PlatformEvent> {
        self.events.iter().find(|event| event.id == *id)
    }

    /// Every event that was announced, in that order.
    pub fn events(&self) -> &[PlatformEvent] {
        &self.events
    }

    /// Everything that happened, in that order.
    pub fn history(&self) -> &[HistoryEntry] {
        &self.history
    }

    /// Events that are planned and not announced yet.
    pub fn planned(&self) -> usize {
        self.pending.len()
    }

    /// The VMs, ordered by name.
    pub fn vms(&self) -> impl Iterator<Item = &Vm> {
        self.seats.values().map(|seat| &seat.vm)
    }

    /// Whether the VM is interrupted by an event at this moment.
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
