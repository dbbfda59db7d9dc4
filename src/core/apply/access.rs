//! Access to the parts of the state that an entry changes.

use crate::model::command::Rejection;
use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::state::{Replica, State};
use alloc::sync::Arc;

pub(crate) type Applied = Result<(), Rejection>;

/// Mutable access to the replica.
pub(crate) fn registered<'a>(state: &'a mut State, name: &VmName) -> Result<&'a mut Replica, Rejection> {
    state.replicas.get_mut(name).map(Arc::make_mut).ok_or(Rejection::UnknownReplica)
}

/// Mutable access to the open event.
pub(crate) fn open<'a>(state: &'a mut State, id: &EventId) -> Result<&'a mut Event, Rejection> {
    state.open.get_mut(id).map(Arc::make_mut).ok_or(Rejection::UnknownEvent)
}

/// Mutable access to the open event, or else to the last closed event of this id.
pub(crate) fn known<'a>(state: &'a mut State, id: &EventId) -> Result<&'a mut Event, Rejection> {
    let known = match state.open.get_mut(id) {
        Some(event) => Some(event),
        None => state.history.iter_mut().rev().find(|event| event.announcement.id == *id),
    };
    known.map(Arc::make_mut).ok_or(Rejection::UnknownEvent)
}
