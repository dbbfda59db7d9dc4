//! Records for how long an event kept a VM from running.

use crate::apply::access::{Applied, known};
use crate::model::command::Rejection;
use crate::model::event::Ending;
use crate::model::id::{EventId, VmName};
use crate::model::state::State;
use core::time::Duration;

pub(crate) fn record_impact(state: &mut State, by: &VmName, id: &EventId, lasted: Duration) -> Applied {
    let event = known(state, id)?;
    if !event.affects(by) || event.is_drill() {
        return Err(Rejection::NotYours);
    }
    if event.ending != Some(Ending::Completed) {
        return Err(Rejection::NotNow);
    }
    if event.impacts.contains_key(by) {
        return Err(Rejection::Repeated);
    }
    event.impacts.insert(by.clone(), lasted);
    event.revision += 1;
    Ok(())
}
