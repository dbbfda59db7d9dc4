//! Claims of approvals, and the outcomes of their posts.

use super::{report, stages};
use crate::apply::access::{Applied, known, open};
use crate::model::blocker::Clearance;
use crate::model::claim::{Claim, PostOutcome};
use crate::model::command::{ClaimApproval, RecordPost, Rejection};
use crate::model::document::Status;
use crate::model::event::Ending;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::schedule::affected_members::stints_of;
use crate::schedule::clearance::clearance;

pub(super) fn claim_approval(state: &mut State, by: &VmName, claim: &ClaimApproval) -> Applied {
    let ClaimApproval { event: id, approver, stints, .. } = claim;
    let (reason, decision, until) = (claim.reason, claim.decided_at_revision, claim.until);
    let is_last_resort = claim.is_last_resort;
    let now = state.now;
    if state.leadership.as_ref().is_some_and(|leadership| leadership.by != *by) {
        return Err(Rejection::NotYours);
    }
    // The leader may have isolated approvals yet to be reported; in a pair the other replica may, too.
    if state.is_suspect(by) || state.is_pair_in_doubt() {
        return Err(Rejection::NotNow);
    }
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    if clearance(state, event, now) != Clearance::Clear(reason) || stints_of(state, event) != *stints {
        return Err(Rejection::NotDue);
    }
    if event.decided_at_revision != decision {
        return Err(Rejection::Changed);
    }
    if state.replicas.get(approver).and_then(|replica| replica.lists_event(id)) != Some(&Status::Scheduled) {
        return Err(Rejection::NotNow);
    }
    let is_in_force = event.open_claim().is_some_and(|claim| now < claim.until);
    if is_in_force || (event.is_accepted() && event.next_claim_from().is_some_and(|at| now < at)) {
        return Err(Rejection::Repeated);
    }
    if is_last_resort && !event.may_use_last_resort() {
        return Err(Rejection::Repeated);
    }
    let attempt = state.next_attempt();
    let event = open(state, id)?;
    stages::enter_stage(event, Stage::Claimed, now);
    let (approver, stints) = (approver.clone(), stints.clone());
    event.claims.push(Claim {
        attempt,
        approver,
        reason,
        decided_at_revision: decision,
        stints,
        at: now,
        until,
        outcome: None,
        is_last_resort,
    });
    event.revision += 1;
    Ok(())
}

pub(super) fn record_post(state: &mut State, by: &VmName, post: &RecordPost) -> Applied {
    let RecordPost { event: id, attempt, outcome } = post;
    let now = state.now;
    // The event may have left the document while the reply was under way; the post is recorded regardless.
    let event = known(state, id)?;
    let claim = event.claims.iter_mut().find(|claim| claim.attempt == *attempt).ok_or(Rejection::UnknownAttempt)?;
    if claim.approver != *by {
        return Err(Rejection::NotYours);
    }
    if claim.outcome.is_some() {
        return Err(Rejection::Repeated);
    }
    claim.outcome = Some((outcome.clone(), now));
    event.revision += 1;
    let is_for_another = claim.decided_at_revision != event.decided_at_revision;
    if *outcome == PostOutcome::Accepted {
        // The event may have been scheduled again meanwhile.
        stages::enter_stage(event, Stage::Claimed, now);
        stages::enter_stage(event, Stage::Approved, now);
        event.reopened = event.reopened.or(is_for_another.then_some(now));
    }
    // The event ended before the outcome of its approval was known.
    if event.ending == Some(Ending::Completed) && !event.may_have_started() {
        event.ending = Some(Ending::Cancelled);
        report::reopen_listed(state);
    }
    Ok(())
}
