//! Moves an event to another stage.

use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use alloc::sync::Arc;

/// Enters the stage where the table of legal transitions has it; otherwise the event stays where it is.
pub(crate) fn enter_stage(event: &mut Event, stage: Stage, now: Timestamp) {
    if event.stage().may_become(stage) {
        event.entered.push((stage, now));
        event.revision += 1;
    }
}

/// An event that had started or was over is to come again (`members.md` 3, D4 and D5); any other goes on.
pub(crate) fn return_to_scheduled(event: &mut Event, now: Timestamp) {
    if event.stage() < Stage::Started {
        return;
    }
    let may_be_approved = event.may_have_been_approved();
    event.entered.push((if may_be_approved { Stage::Approved } else { Stage::Preparing }, now));
    event.reopened = may_be_approved.then_some(now);
    event.ending = None;
    event.stuck_since = None;
    event.former_calls.extend(event.last_call_since.take());
    // One that had started is treated otherwise than one that is to come.
    (event.treatment, event.treated) = (None, None);
    event.revision += 1;
    // What was said of it before it went was said of something else.
    if !may_be_approved {
        event.decided_at_revision = event.revision;
        event.waivers.clear();
        (event.times_given_back, event.is_deferred) = (0, false);
    }
}

/// A decision that nobody was told can be held, and one for something else than the event is now is made anew, with what
/// that asks for. One that may have been told is repeated.
pub(crate) fn reopen_after_expired_claims(state: &mut State) {
    let now = state.now;
    let is_open = |event: &Event| {
        let is_told = event.has_isolated_approval() || event.reason_to_repeat().is_some();
        event.stage() == Stage::Claimed && event.is_claim_over(now) && !is_told
    };
    for event in state.open.values_mut().filter(|event| is_open(event)) {
        Arc::make_mut(event).entered.push((Stage::Preparing, now));
    }
}
