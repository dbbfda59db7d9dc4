//! Orders of the cloud's driver for an open event. Actions that the platform never takes are rejected: no event is
//! cancelled or moved after its start, and no event ends twice.

use std::fmt;
use std::time::Duration;

use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

use super::due::PlatformChange;
use super::event::{EventEnd, PlatformEvent, PlatformStartCause};
use super::{Cloud, HistoryEntry};

/// Why an order is rejected.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OrderError {
    Unknown(EventId),
    IdTaken(EventId),
    NotScheduled(EventId),
    NotStarted(EventId),
    Over(EventId),
    UnknownVm(VmName),
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "no event {id} was announced or planned"),
            Self::IdTaken(id) => write!(f, "an event {id} exists already; leave the id out to get a new one"),
            Self::NotScheduled(id) => write!(f, "event {id} is not Scheduled; once Started it can only be finished"),
            Self::NotStarted(id) => write!(f, "event {id} is not Started; start or cancel it instead"),
            Self::Over(id) => write!(f, "event {id} is over"),
            Self::UnknownVm(vm) => write!(f, "this cloud has no VM {vm}"),
        }
    }
}

impl std::error::Error for OrderError {}

/// A further change of an announced event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Amendment {
    Resources(Vec<VmName>),
    /// `None` is shown as -1.
    Duration(Option<Duration>),
}

impl Cloud {
    /// Cancels a Scheduled event.
    pub fn cancel(&mut self, now: Timestamp, id: &EventId) -> Result<(), OrderError> {
        self.order_scheduled(now, id, |_| PlatformChange::End(EventEnd::Cancelled))
    }

    /// The event starts regardless of approvals and NotBefore.
    pub fn start(&mut self, now: Timestamp, id: &EventId) -> Result<(), OrderError> {
        self.order_scheduled(now, id, |_| PlatformChange::Start(PlatformStartCause::Ordered))
    }

    /// Sets a new NotBefore, `notice` from now.
    pub fn move_not_before(&mut self, now: Timestamp, id: &EventId, notice: Duration) -> Result<(), OrderError> {
        self.order_scheduled(now, id, |now| PlatformChange::Move { not_before: now.plus(notice), planned: false })
    }

    /// Changes the resources or the announced duration, also of a Started event.
    pub fn amend(&mut self, now: Timestamp, id: &EventId, amendment: Amendment) -> Result<(), OrderError> {
        self.advance(now);
        let ordinal = self.place_of(id)?;
        if self.events.get(ordinal).is_none_or(|event| event.ended.is_some()) {
            return Err(OrderError::Over(id.clone()));
        }
        self.apply_change(ordinal, PlatformChange::Amend(amendment));
        self.settle();
        Ok(())
    }

    /// The Started event leaves the array.
    pub fn finish(&mut self, now: Timestamp, id: &EventId) -> Result<(), OrderError> {
        self.advance(now);
        let ordinal = self.place_of(id)?;
        if !self.events.get(ordinal).is_some_and(PlatformEvent::is_started) {
            return Err(OrderError::NotStarted(id.clone()));
        }
        self.apply_change(ordinal, PlatformChange::End(EventEnd::Finished));
        self.settle();
        Ok(())
    }

    /// Returns and clears the history: for runs too long to keep their history.
    pub fn take_history(&mut self) -> Vec<HistoryEntry> {
        std::mem::take(&mut self.history)
    }

    fn order_scheduled(
        &mut self,
        now: Timestamp,
        id: &EventId,
        change: impl FnOnce(Timestamp) -> PlatformChange,
    ) -> Result<(), OrderError> {
        self.advance(now);
        let ordinal = self.place_of(id)?;
        if !self.events.get(ordinal).is_some_and(PlatformEvent::is_scheduled) {
            return Err(OrderError::NotScheduled(id.clone()));
        }
        self.apply_change(ordinal, change(self.now));
        self.settle();
        Ok(())
    }

    fn place_of(&self, id: &EventId) -> Result<usize, OrderError> {
        self.events.iter().position(|event| event.id == *id).ok_or_else(|| OrderError::Unknown(id.clone()))
    }
}
