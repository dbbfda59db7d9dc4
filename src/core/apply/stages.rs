//! Moves an event to another stage.

use crate::apply::waivers;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;

/// Enters the stage if the table of legal transitions allows the transition; otherwise the event keeps its stage.
pub(crate) fn enter_stage(event: &mut Event, stage: Stage, now: Timestamp) {
    if event.stage().may_become(stage) {
        event.entered.push((stage, now));
        event.revision += 1;
    }
}

/// Returns an event that started or ended to a stage before the start (`SPEC.md` 2, D4 and D5); any other event goes
/// on.
pub(crate) fn return_to_scheduled(event: &mut Event, now: Timestamp) {
    if event.stage() < Stage::Started {
        return;
    }
    let may_be_approved = event.may_have_been_approved();
    event.entered.push((if may_be_approved { Stage::Approved } else { Stage::Preparing }, now));
    event.reopened = may_be_approved.then_some(now);
    event.ending = None;
    event.stuck_since = None;
    event.restart_budget(now);
    event.former_calls.extend(event.last_call_since.take());
    // A started event is treated otherwise than a scheduled event.
    (event.treatment, event.treated) = (None, None);
    event.revision += 1;
    // Decisions from before the event's end applied to an earlier occurrence.
    if !may_be_approved {
        event.decided_at_revision = event.revision;
        event.waivers.clear();
        (event.times_given_back, event.is_deferred) = (0, false);
    }
}

/// Reopens events with an expired claim: a decision that was not posted can be held, and a decision for an older
/// revision of the event is made anew, with its requirements. A decision that may have been posted is repeated. Replicas
/// that came back during the claim can run their hooks now.
pub(crate) fn reopen_after_expired_claims(state: &mut State) {
    let now = state.now;
    let is_open = |event: &Event| {
        let is_told = event.has_isolated_approval() || event.reason_to_repeat().is_some();
        event.stage() == Stage::Claimed && event.is_claim_over(now) && !is_told
    };
    let mut reopened = BTreeSet::new();
    for (id, event) in state.open.iter_mut().filter(|(_, event)| is_open(event)) {
        Arc::make_mut(event).entered.push((Stage::Preparing, now));
        reopened.insert(id.clone());
    }
    if !reopened.is_empty() {
        let reachable = state.replicas.iter().filter(|(_, replica)| replica.unreachable.is_none());
        let reachable: BTreeSet<VmName> = reachable.map(|(name, _)| name.clone()).collect();
        let is_back = |event: &Event, vm: &VmName| reopened.contains(&event.announcement.id) && reachable.contains(vm);
        waivers::take_back_waivers(state, is_back);
    }
}
