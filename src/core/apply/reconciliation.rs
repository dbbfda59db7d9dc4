//! Leadership, suspects, and the reports that clear suspects (`SPEC.md` 7).

use crate::apply::access::{Applied, open, registered};
use crate::apply::budgets;
use crate::apply::report;
use crate::apply::stages;
use crate::apply::stages::enter_stage;
use crate::model::claim::PostOutcome;
use crate::model::command::Rejection;
use crate::model::document::Document;
use crate::model::event::{Ending, Event};
use crate::model::id::{EventId, VmName};
use crate::model::isolated_approval::{IsolatedApproval, JOURNAL_LIMIT, JournalEntry};
use crate::model::lifecycle::Stage;
use crate::model::reconcile_state::Leadership;
use crate::model::state::State;
use crate::model::time::Timestamp;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A new leader cannot know which replicas were isolated before its leadership, including the leader itself.
pub(crate) fn begin_leadership(state: &mut State, by: &VmName, term: u64, turn: u64, voters: &[VmName]) -> Applied {
    if state.leadership.as_ref().is_some_and(|known| (known.term, known.turn) >= (term, turn)) {
        return Err(Rejection::OutOfOrder);
    }
    state.leadership = Some(Leadership { by: by.clone(), term, turn, voters: voters.into() });
    for voter in voters {
        state.start_number(voter);
    }
    Ok(())
}

/// Lets budgets count from a leadership that begins long after the last entry: no hook began while no leader had a quorum,
/// and the new leader would approve the events in this moment, without their hooks. A short election costs no time.
pub(crate) fn restart_budgets(state: &mut State, last_entry: Timestamp) {
    let lost = state.now.since(last_entry);
    let is_short_of_time = |event: &&Event| {
        let budget = event.treatment.as_ref().and_then(|treatment| treatment.budget);
        budget.is_some_and(|budget| lost >= budget / 4)
    };
    let short: Vec<EventId> =
        state.open_events().filter(is_short_of_time).map(|event| event.announcement.id.clone()).collect();
    for id in short {
        budgets::restart_after_a_wait(state, &id, last_entry);
    }
}

/// Suspects a replica, also if the replica is suspect already: a reconciliation from before the last silence does not
/// cover the time since.
pub(crate) fn suspect_replica(state: &mut State, replica: &VmName, number: u64) -> Applied {
    if number != state.reconcile_states.get(replica).map_or(0, |known| known.number) + 1 {
        return Err(Rejection::OutOfOrder);
    }
    state.start_number(replica);
    Ok(())
}

/// Clears a suspect by an operator's request. A replica that still votes is suspected again by the next leader.
pub(crate) fn clear_suspect(state: &mut State, replica: &VmName) -> Applied {
    state.reconcile_states.remove(replica).map(drop).ok_or(Rejection::UnknownReplica)
}

/// Records isolated approvals under any number; only a report under the current number clears the replica.
pub(crate) fn reconcile_journal(state: &mut State, by: &VmName, number: u64, journal: &[JournalEntry]) -> Applied {
    if journal.len() > JOURNAL_LIMIT || journal.iter().any(|entry| entry.approval.approver != *by) {
        return Err(Rejection::NotYours);
    }
    let mut is_news = false;
    for entry in journal {
        is_news |= record(state, entry);
    }
    if let Some(suspicion) = state.reconcile_states.get_mut(by)
        && suspicion.number == number
        && !suspicion.is_reconciled
    {
        suspicion.is_reconciled = true;
        is_news = true;
    }
    if is_news { Ok(()) } else { Err(Rejection::Repeated) }
}

/// Merges one journal entry into the state; false if the whole entry is known.
pub(crate) fn record(state: &mut State, entry: &JournalEntry) -> bool {
    let now = state.now;
    let JournalEntry { announcement, approval: takeover } = entry;
    let id = &announcement.id;
    if state.open_event(id).is_some_and(Event::is_drill) {
        return false;
    }
    if let Ok(event) = open(state, id) {
        return merge(event, takeover, now);
    }
    // An apparently cancelled event may have ended because of this approval, or have come back before the approval.
    let is_back = |event: &Event| event.may_come_back() && event.over_at().is_some_and(|over| takeover.at > over);
    let mut closed = state.history.iter_mut().rev();
    if let Some(event) = closed.find(|event| event.announcement.id == *id && !event.is_drill() && !is_back(event)) {
        return merge(Arc::make_mut(event), takeover, now);
    }
    let new = || Event::first_seen_as(announcement.clone(), takeover.approver.clone(), now).into();
    let mut event = report::reopened(state, id).unwrap_or_else(new);
    let changed = Arc::make_mut(&mut event);
    stages::return_to_scheduled(changed, now);
    merge(changed, takeover, now);
    state.open.insert(id.clone(), event);
    // The approver has listed the event, so its next report shows whether the event is still listed. A report already
    // on its way may be from before the announcement, and must not end the event.
    if let Ok(replica) = registered(state, &takeover.approver) {
        replica.reports += 1;
        let mut listed = replica.document.take().unwrap_or_default().events;
        listed.push(announcement.clone());
        replica.document = Some(Document::new(listed));
    }
    true
}

fn merge(event: &mut Event, takeover: &IsolatedApproval, now: Timestamp) -> bool {
    let is_settled = event.may_have_started();
    let same = |known: &&mut IsolatedApproval| known.approver == takeover.approver && known.at == takeover.at;
    match event.isolated_approvals.iter_mut().find(same) {
        Some(known) if known.outcome.is_some() || takeover.outcome.is_none() => return false,
        Some(known) => known.outcome.clone_from(&takeover.outcome),
        None => event.isolated_approvals.push(IsolatedApproval { recorded: Some(now), ..takeover.clone() }),
    }
    event.revision += 1;
    // An approval without a known outcome counts by itself, and may turn out as not sent.
    if takeover.outcome.is_some() && takeover.may_have_been_posted() {
        enter_stage(event, Stage::Claimed, now);
    }
    if takeover.outcome_is(&PostOutcome::Accepted) {
        enter_stage(event, Stage::Approved, now);
    }
    if event.ending == Some(Ending::Cancelled) && !is_settled && event.may_have_started() {
        event.ending = Some(Ending::Completed);
    }
    true
}
